"""The default exclusions: each applies only with its markers, `!` cancels it, and status counts it."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.folder.tree.default_exclusions import CACHE_SIGNATURE, EXCLUSIONS, Exclusion
from consumers.folder.tree.file_status import file_status
from consumers.folder.tree.follow_rules import FollowRules
from consumers.folder.tree.walk import Walker
from consumers.types import EXCLUSIONS_VERSION
from tests.consumers.folder.support import Folder, until, uri

ROOT = Path(__file__).parents[4]
ROWS = [pytest.param(row, id=f"{row.reason} {row.names[0]} {(*row.beside, *row.inside)[:1]}") for row in EXCLUSIONS]


def walked(root: Path, exclude: tuple[str, ...] = ()) -> tuple[set[str], dict[str, int]]:
    """Returns the files that a walk finds, relative to the root, and the counts of excluded files."""
    top = os.fsencode(root)
    rules = FollowRules(top, ("**",), exclude)
    walker = Walker(rules, follow=False, watch_directory=lambda *_: None)
    found = walker.walk(top, file_status(top, follow=False))
    return {os.fsdecode(os.path.relpath(path, top)) for path, _ in found}, walker.excluded()


def write(path: Path, content: bytes = b"text") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def named(pattern: str) -> str:
    """Returns a name that matches the pattern."""
    return pattern.removesuffix("/").replace("*", "x")


@pytest.mark.parametrize("row", ROWS)
def test_each_default_exclusion_applies_and_can_be_reversed(row: Exclusion, tmp_path: Path) -> None:
    for pattern in row.names:
        for marker in (*row.beside, *row.inside) or ("",):
            top = tmp_path / f"{pattern.strip('/')} {marker}".replace("*", "x").strip() / "project"
            name = named(pattern)
            kept = top / "notes.md"
            write(kept)
            excluded = top / name / "page.md" if row.needs_marker or pattern.endswith("/") else top / name
            write(excluded)
            if row.needs_marker:
                assert walked(top)[0] == {"notes.md", f"{name}/page.md"}, "the name alone is not enough"
                place = top if marker in row.beside else top / name
                write(place / named(marker), CACHE_SIGNATURE)
                kept_markers = {named(marker)} if marker in row.beside else set()
            else:
                kept_markers = set()
            followed, counts = walked(top)
            assert followed == {"notes.md", *kept_markers}
            assert counts == {row.reason: 1}
            took_back = "!" + name.replace("#", "\\#").replace("\r", "?")
            assert str(excluded.relative_to(top)) in walked(top, (took_back,))[0]


def test_cachedir_tag_without_signature_excludes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "notes" / "CACHEDIR.TAG", b"a tag of ours")
    write(tmp_path / "notes" / "a.md")
    os.mkfifo(tmp_path / "pipe.d") if hasattr(os, "mkfifo") else None
    assert walked(tmp_path)[0] >= {"notes/CACHEDIR.TAG", "notes/a.md"}
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo" / "CACHEDIR.TAG")
    write(tmp_path / "fifo" / "b.md")
    assert "fifo/b.md" in walked(tmp_path)[0]


def test_the_followed_folder_itself_is_never_excluded(tmp_path: Path) -> None:
    top = tmp_path / "target"
    write(tmp_path / "Cargo.toml")
    write(top / "pyvenv.cfg")
    write(top / "a.md")
    assert "a.md" in walked(top)[0]


def test_configured_patterns_are_counted_as_exclusions(tmp_path: Path) -> None:
    for name in ("a.md", "b.txt", "drafts/c.md", ".hidden"):
        write(tmp_path / name)
    assert walked(tmp_path, ("drafts/", "*.txt")) == ({"a.md"}, {"exclude": 2, "hidden": 1})


FOLDERS = st.sampled_from(("target", "d", ".git", "#recycle", "Trash", "node_modules"))
FILES = st.sampled_from(("a.md", "Cargo.toml", "package.json", "pyvenv.cfg", "CACHEDIR.TAG", "x.tmp", "info"))
PATHS = st.builds(lambda folders, file: "/".join((*folders, file)), st.lists(FOLDERS, max_size=3), FILES)
PATTERNS = st.sampled_from(("!target/", "d/", "!.git", "*.md", "!/target/d/", "!\\#recycle/", "!Trash"))


@settings(max_examples=80, deadline=None)
@given(paths=st.lists(PATHS, min_size=1, max_size=8), exclude=st.lists(PATTERNS, max_size=2))
def test_scan_and_check_of_a_single_path_agree(paths: list[str], exclude: list[str]) -> None:
    """Events name single paths, scans walk: both must agree on whether a file is followed."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for path in paths:
            try:
                write(root / path, CACHE_SIGNATURE)
            except OSError:  # the same name as a file and as a folder
                continue
        rules = FollowRules(os.fsencode(root), ("**",), exclude)
        files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        followed = {path for path in files if rules.follows(os.fsencode(root / path))}
        assert walked(root, tuple(exclude))[0] == followed


def test_added_or_removed_marker_file_changes_the_exclusion(folder: Folder) -> None:
    write(folder.root / "a.md")
    write(folder.root / "project" / "target" / "b.md")
    write(folder.root / "venv" / "c.md")
    daemon = folder.scanned()
    assert len(daemon.digests) == 3
    write(folder.root / "project" / "Cargo.toml")
    write(folder.root / "venv" / "pyvenv.cfg")
    kept = {uri(folder.root / "a.md"), uri(folder.root / "project" / "Cargo.toml")}
    until(lambda: set(daemon.digests) == kept, "what is excluded now is forgotten")
    assert folder.state().unconfirmed == 0
    folder.rescan()
    assert folder.state().excluded == {"build": 1, "virtual environment": 1}
    write(folder.root / "venv" / "later.md")
    (folder.root / "project" / "Cargo.toml").unlink()
    (folder.root / "venv" / "pyvenv.cfg").unlink()
    folder.settled()
    assert len(daemon.digests) == 4
    assert folder.state().excluded == {}


def test_exclusions_page_lists_every_default_exclusion() -> None:
    page = (ROOT / "docs" / "reference" / "exclusions.md").read_text("utf-8")
    for row in EXCLUSIONS:
        line = next(
            line for line in page.splitlines() if line.startswith(f"| {row.reason} |") and f"`{row.names[0]}`" in line
        )
        names = [f"`{name}`".replace("\r", "\\r") for name in (*row.names, *row.beside, *row.inside)]
        assert [name for name in names if name not in line] == []
    reasons = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")]
    assert sorted(reasons) == sorted(["reason", *(row.reason for row in EXCLUSIONS)]), "one row each, below one header"


def test_exclusions_version_equals_that_of_the_newest_row() -> None:
    assert max(row.since for row in EXCLUSIONS) == EXCLUSIONS_VERSION
