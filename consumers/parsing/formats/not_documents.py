"""Text files written by programs for programs. Such files are recognised by name and skipped."""

import re
from dataclasses import dataclass


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
