"""Text files that nobody wrote to be read: what programs wrote for programs, told by their names. They are skipped."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotRead:
    """A kind of file that is skipped."""

    title: str
    """What it is, as the reason says it."""
    endings: tuple[str, ...] = ()
    """Of file names, in lower case without the dot."""
    names: tuple[str, ...] = ()
    """Whole names of files in lower case; `*` stands for any letters."""


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
    """What kind of file that is not read a name says, `base` without its folder and both in lower case; None for others."""
    if (found := _BY_ENDING.get(ending)) is not None:
        return found
    return next((each for each, pattern in _BY_NAME if pattern.fullmatch(base)), None)
