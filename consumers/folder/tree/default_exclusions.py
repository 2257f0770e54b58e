"""Files and folders that are excluded by default: one table, one reason per row.

A row excludes the files and folders with its `names`. A row with markers excludes a folder only if one of the markers exists:
next to the folder (`beside`) or in it (`inside`). A row for a common folder name, such as `target`, always requires a marker.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from consumers.types import EXCLUSIONS_VERSION


@dataclass(frozen=True, slots=True)
class Exclusion:
    """One row of the table. Names and markers are case-sensitive shell patterns."""

    reason: str
    """Reason under which `status` counts the excluded files and folders."""
    names: tuple[str, ...] = ("*/",)
    """Names of files and folders. A name that ends in "/" matches folders only."""
    beside: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    since: int = EXCLUSIONS_VERSION
    """First version of the table that contains the row."""

    @property
    def needs_marker(self) -> bool:
        return bool(self.beside or self.inside)


HIDDEN, TEMPORARY, THUMBNAILS = "hidden", "temporary", "thumbnails and indexes"
RECYCLE_BIN, SNAPSHOTS, SYSTEM = "recycle bin", "snapshots", "system"
VIRTUAL_ENVIRONMENT, CACHE, DEPENDENCIES, BUILD = "virtual environment", "cache", "dependencies", "build"

CACHE_TAG = "CACHEDIR.TAG"
CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
"""First bytes of a valid file `CACHE_TAG` (https://bford.info/cachedir/)."""

EXCLUSIONS = (
    # Hidden files and folders: .git, .~lock.*#, .name.swp (vim), .name.AbC123 (rsync).
    Exclusion(HIDDEN, (".*",), since=1),
    # Files that a program has open or has not finished writing.
    Exclusion(
        TEMPORARY,
        ("~$*", "*~", "#*#", "*.swp", "*.swx", "*.tmp", "*.temp", "*.part", "*.partial", "*.crdownload", "*.download"),
        since=1,
    ),
    # Previews and indexes that file managers and network drives create.
    Exclusion(THUMBNAILS, ("Thumbs.db", "desktop.ini"), since=1),
    Exclusion(
        THUMBNAILS,
        (
            ".DS_Store", "thumbs.db", "Desktop.ini", "ehthumbs.db", "ehthumbs_vista.db", "@eaDir/", "*@SynoEAStream",
            "*@SynoResource", "@__thumb/", ".@__thumb/", ".thumbnails/", "__MACOSX/", "Icon\r",
        ),
    ),
    # Deleted files. A `Trash` folder of the XDG specification contains the folder `info`.
    Exclusion(
        RECYCLE_BIN,
        (
            "$RECYCLE.BIN/", "$Recycle.Bin/", "#recycle/", "@Recycle/", ".Trash/", ".Trash-*/", ".Trashes/",
            "Network Trash Folder/",
        ),
    ),
    Exclusion(RECYCLE_BIN, ("Trash/",), inside=("info",)),
    # Earlier versions of the same files.
    Exclusion(SNAPSHOTS, ("#snapshot/", "@Recently-Snapshot/", "~snapshot/", ".snapshot/", ".zfs/", ".stversions/")),
    Exclusion(SYSTEM, ("lost+found/",), since=1),
    Exclusion(SYSTEM, ("System Volume Information/",)),
    # Virtual environments of Python and conda.
    Exclusion(VIRTUAL_ENVIRONMENT, inside=("pyvenv.cfg", "conda-meta")),
    Exclusion(CACHE, ("__pycache__/",), since=1),
    Exclusion(CACHE, inside=(CACHE_TAG,)),
    # Third-party libraries that a package manager installed.
    Exclusion(
        DEPENDENCIES,
        ("node_modules/",),
        beside=("package.json",),
        inside=(".package-lock.json", ".yarn-integrity", ".yarn-state.yml", ".modules.yaml"),
        since=1,
    ),
    Exclusion(DEPENDENCIES, ("vendor/",), beside=("composer.json",), inside=("modules.txt",)),
    Exclusion(DEPENDENCIES, ("deps/",), beside=("mix.exs",)),
    Exclusion(DEPENDENCIES, ("bower_components/",), beside=("bower.json",)),
    Exclusion(DEPENDENCIES, ("Pods/",), beside=("Podfile",)),
    Exclusion(DEPENDENCIES, ("*.egg-info/",), inside=("PKG-INFO",)),
    # Build outputs.
    Exclusion(BUILD, ("target/",), beside=("Cargo.toml", "pom.xml", "build.sbt", "project.clj")),
    Exclusion(
        BUILD,
        ("build/",),
        beside=(
            "package.json", "pyproject.toml", "setup.py", "build.gradle", "build.gradle.kts", "CMakeLists.txt", "pubspec.yaml",
        ),
    ),
    Exclusion(BUILD, ("dist/",), beside=("package.json", "pyproject.toml", "setup.py")),
    Exclusion(BUILD, ("dist-newstyle/",), beside=("*.cabal", "cabal.project")),
    Exclusion(BUILD, ("_build/",), beside=("conf.py", "mix.exs", "dune-project", "rebar.config")),
    Exclusion(BUILD, ("_site/",), beside=("_config.yml", "_config.yaml")),
    Exclusion(BUILD, ("site/",), beside=("mkdocs.yml", "mkdocs.yaml")),
    Exclusion(BUILD, ("bin/", "obj/"), beside=("*.csproj", "*.fsproj", "*.vbproj")),
    Exclusion(BUILD, ("zig-out/", "zig-cache/"), beside=("build.zig",)),
    Exclusion(BUILD, inside=("CMakeCache.txt", "meson-private")),
)  # fmt: skip


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(name.removesuffix("/")) for name in names))


def _by_row(*, folders: bool) -> re.Pattern[str]:
    """Compiles the names of all rows without markers into one expression. The name of the matching group contains the row
    number."""
    parts = []
    # Later rows come first, so that `.Trash-1000` gets the reason "recycle bin" instead of "hidden".
    for number, row in reversed(list(enumerate(EXCLUSIONS))):
        names = [each for each in row.names if folders or not each.endswith("/")]
        if names and not row.needs_marker:
            parts.append(f"(?P<row{number}>{_pattern(names).pattern})")
    return re.compile("|".join(parts))


_FILES, _FOLDERS = _by_row(folders=False), _by_row(folders=True)
_MARKED = [(row, _pattern(row.names)) for row in EXCLUSIONS if row.needs_marker]
_MARKERS = _pattern(marker for row in EXCLUSIONS for marker in (*row.beside, *row.inside))


def by_name(name: str, *, folder: bool) -> Exclusion | None:
    """Returns the row that excludes every file or folder of this name."""
    found = (_FOLDERS if folder else _FILES).match(name)
    return None if found is None or found.lastgroup is None else EXCLUSIONS[int(found.lastgroup.removeprefix("row"))]


def by_marker(name: str) -> list[Exclusion]:
    """Returns the rows that exclude a folder of this name if one of their markers exists."""
    return [row for row, names in _MARKED if names.match(name)]


def is_marker(name: str) -> bool:
    """Whether a file or folder of this name is a marker: it may exclude its own folder or a sibling folder."""
    return _MARKERS.match(name) is not None


def marker_in(markers: Iterable[str], names: Iterable[str]) -> str | None:
    """Returns the first name that matches a marker, or None."""
    return next((name for name in names if any(fnmatch.fnmatchcase(name, marker) for marker in markers)), None)


def excludes_folder(name: str, siblings: Iterable[str], content: Iterable[str], is_cache: Callable[[], bool]) -> bool:
    """Whether a folder is excluded, given the names of its siblings and of its content.

    `is_cache()` returns whether the `CACHE_TAG` in the folder has the signature.
    """
    if by_name(name, folder=True):
        return True
    for row in by_marker(name):
        inside = marker_in(row.inside, content)
        if marker_in(row.beside, siblings) or (inside is not None and (inside != CACHE_TAG or is_cache())):
            return True
    return False
