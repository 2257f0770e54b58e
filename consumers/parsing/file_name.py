"""Information in a file's name: a hint of the format, a fallback title, and whether the file is meant for programs only."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from consumers.parsing.formats.registry import GZIP


@dataclass(frozen=True, slots=True)
class NotRead:
    """A kind of file that is skipped."""

    title: str
    """Name of the kind in the reason shown to users."""
    endings: tuple[str, ...] = ()
    """Endings of file names, in lower case without the dot."""
    names: tuple[str, ...] = ()
    """Whole file names in lower case; `*` stands for any characters except "/"."""


NOT_READ = (
    NotRead("a style sheet", ("css", "scss", "sass", "less", "styl")),
    NotRead(
        "a minified script",
        names=("*.min.js", "*-min.js", "*.min.mjs", "*.bundle.js", "*.chunk.js", "jquery.js", "underscore.js"),
    ),
    NotRead("a source map", ("map",)),
    NotRead(
        "a search index",
        names=(
            "searchindex.js", "search_index.js", "search-index.js", "searchdata.js", "searchindex.json", "search_index.json",
            "search-index.json", "lunr_index.js", "elasticlunr.js", "navtree*.js",
        ),
    ),
    NotRead("a drawing", ("svg", "svgz", "drawio", "eps", "ps")),
    NotRead(
        "a lock file",
        ("lock", "lockb"),
        (
            "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "packages.lock.json", "go.sum", "*.lock.hcl",
            "gradle.lockfile", "conda-lock.yml", "pylock.toml",
        ),
    ),
    NotRead("a program's object or cache", ("pyc", "pyo", "class", "o", "obj", "pdb", "dylib", "wasm", "tsbuildinfo")),
)  # fmt: skip


def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(name).replace(r"\*", r"[^/]*") for name in names) or r"(?!)")


_BY_NAME = tuple((each, _pattern(each.names)) for each in NOT_READ)
_BY_ENDING = {ending: each for each in NOT_READ for ending in each.endings}


def kind_of(base: str, ending: str) -> NotRead | None:
    """Returns the kind of skipped file that a name indicates, or None for other files.

    `base` is the name without its folder, `ending` its ending; both are in lower case.
    """
    if (found := _BY_ENDING.get(ending)) is not None:
        return found
    return next((each for each, pattern in _BY_NAME if pattern.fullmatch(base)), None)


def format_hint(name: bytes) -> tuple[str, NotRead | None]:
    """Returns (ending, kind of file to skip). The kind is None unless the name is typical of such a kind."""
    ending = ending_of(name)
    return ending, kind_of(_base(name).decode("utf-8", "replace").lower(), ending)


def ending_of(name: bytes) -> str:
    """Returns the ending of a file's name in lower case without the dot, or ""."""
    stem, dot, ending = _base(name).rpartition(b".")
    return ending.decode("ascii", "replace").lower() if dot and stem else ""


def stem_of(name: bytes) -> str:
    """Returns a file's name without folder and ending."""
    base = _base(name)
    stem, dot, _ = base.rpartition(b".")
    return (stem if dot and stem else base).decode("utf-8", "replace")


def unpacked_name(name: bytes) -> bytes:
    """Returns the name without `.gz`: the name of the file inside."""
    return name[: -len(b".gz")] if ending_of(name) in GZIP.endings else name


def parses_alike(old: bytes, new: bytes, titles: Iterable[str]) -> bool:
    """Whether a renamed file certainly yields the same documents. `titles` are the titles of its documents.

    Returns False if a title equals the old name's stem, because the title may come from the name.
    """
    if _base(old) == _base(new):
        return True
    old_names, new_names = (old, unpacked_name(old)), (new, unpacked_name(new))
    if [format_hint(name) for name in old_names] != [format_hint(name) for name in new_names]:
        return False
    return {stem_of(name) for name in old_names}.isdisjoint(titles)


def _base(name: bytes) -> bytes:
    """Returns the name without its folder, and without the `.txt` that Sphinx appends to the sources that it publishes."""
    base = name.rsplit(b"/", 1)[-1]
    return base[: -len(b".txt")] if base.lower().endswith((b".rst.txt", b".md.txt")) else base
