"""Puts the site's sources together in one folder: `python -m docs.site.assemble FOLDER`.

Pages lie in `docs/` where they can be read as they are, with links to files of the checkout. In the site stand beside them the
generated reference, and a few pages from elsewhere in the checkout. A link to what is a page of the site becomes one to that
page; what else is linked to comes along as a file to download.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from docs.site import reference

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ELSEWHERE = {
    "CHANGELOG.md": "reference/changelog.md",
    "CONTRIBUTING.md": "how-to/contributing.md",
    "SECURITY.md": "explanation/security.md",
    "examples/container/README.md": "how-to/container.md",
    "examples/grafana/README.md": "how-to/grafana.md",
    "examples/llama/README.md": "how-to/llama.md",
}
"""Pages that lie elsewhere in the checkout, and where they stand in the site."""
INSTEAD = {"config.toml": "reference/configuration.md", "README.md": "index.md"}
"""What the site says in another way than the checkout."""
KINDS = ("tutorials", "how-to", "reference", "explanation", "decisions")
FILES = "files"
LINK = re.compile(r"(?<=\]\()([^)\s#]+)((?:#[^)\s]*)?)(?=\))")
FENCED = re.compile(r"(^```.*?^```\n?)", re.DOTALL | re.MULTILINE)


def assemble(target: Path) -> None:
    """The folder is made anew."""
    shutil.rmtree(target, ignore_errors=True)
    for source in pages():
        place = target / place_of(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(mended(source, target), "utf-8")
    reference.write(target / "reference")
    append(target / "index.md", toctree([f"{kind}/index.md" for kind in KINDS]))
    for kind in KINDS:
        append(target / kind / "index.md", toctree(listed(target / kind)))


def pages() -> Iterator[Path]:
    """Every page that is kept in the checkout."""
    yield from sorted(DOCS.rglob("*.md"))
    yield from (ROOT / name for name in ELSEWHERE)


def place_of(source: Path) -> PurePosixPath:
    """Where a file of the checkout stands in the site: as a page, a picture, or a file to download."""
    name = source.relative_to(ROOT).as_posix()
    if name.startswith("docs/"):
        return PurePosixPath(name.removeprefix("docs/"))
    return PurePosixPath(ELSEWHERE.get(name) or INSTEAD.get(name) or f"{FILES}/{name}")


def mended(source: Path, target: Path) -> str:
    """A page's text with the site's links; files that it links to are copied into `target`."""
    here = place_of(source).parent

    def link(found: re.Match[str]) -> str:
        path, anchor = found.groups()
        if re.match(r"[a-z]+:", path):
            return found[0]
        linked = Path(os.path.normpath(source.parent / path))
        place = place_of(linked)
        if not linked.name.endswith(".md") and linked.is_file() and linked.name not in INSTEAD:
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(linked, target / place)
        return os.path.relpath(place, here) + anchor

    parts = FENCED.split(source.read_text("utf-8"))
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def listed(folder: Path) -> list[str]:
    """The pages of a kind: those that its index links to, in that order, then those that are generated."""
    links = [path for path, _ in LINK.findall((folder / "index.md").read_text("utf-8")) if path.endswith(".md")]
    here = sorted(path.name for path in folder.glob("*.md") if path.name != "index.md")
    return list(dict.fromkeys([*(path for path in links if path in here), *here]))


def toctree(names: list[str]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", "", *names, "```", ""])


def append(page: Path, text: str) -> None:
    page.write_text(page.read_text("utf-8") + text, "utf-8")


if __name__ == "__main__":
    assemble(Path(sys.argv[1]).resolve())
