"""Versions of builds, and `make release`, in repositories made for the test and in a clone of this one."""

import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "systemd" / "package"
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not here: apt-get install git"),
]
WHO = ["-c", "user.name=Ada", "-c", "user.email=ada@hippod.invalid"]
FAKE_MAKE = """#!/bin/sh
mkdir -p dist
case "$1" in
wheel) touch dist/hippod-9.8.0-py3-none-any.whl ;;
deb) touch dist/hippod_9.8.0_amd64.deb ;;
image) [ ! -e "$FAILS" ] && touch dist/hippod_9.8.0_x86_64.image.tar ;;
esac
"""
"""Stands for the builds, which take many minutes."""


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", folder, *WHO, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / {"pyproject": "pyproject.toml", "changelog": "CHANGELOG.md"}.get(name, name)).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "Change")


def project(version: str) -> str:
    return f'[project]\nname = "hippod"\nversion = "{version}"\n'


@pytest.fixture
def version(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(PACKAGE))
    import version

    return version


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "repository"
    place.mkdir()
    git(place, "init", "--quiet", "--initial-branch=main")
    return place


def test_versions_increase_with_commits_up_to_the_release_and_beyond_it(version: ModuleType, repository: Path) -> None:
    found = []
    commit(repository, pyproject=project("0.2.0.dev0"))
    for _ in range(3):
        commit(repository)
        found.append(version.build_version(repository))
    commit(repository, pyproject=project("0.2.0"))
    git(repository, "tag", "v0.2.0")
    found.append(version.build_version(repository))
    assert found[-1] == "0.2.0"
    commit(repository, pyproject=project("0.3.0.dev0"))
    found.append(version.build_version(repository))
    assert re.fullmatch(r"0\.3\.0\.dev6\+g[0-9a-f]{7}", found[-1])
    for before, after in pairwise(["0.1.0", *found]):
        assert Version(before) < Version(after)
        if shutil.which("dpkg"):
            compare = ["dpkg", "--compare-versions", version.for_debian(before), "lt", version.for_debian(after)]
            assert subprocess.run(compare).returncode == 0, compare
    (repository / "pyproject.toml").write_text(project("0.3.0.dev0") + "\n")
    assert version.build_version(repository) == f"{found[-1]}.changed"


def test_a_commit_after_the_release_has_no_version_until_pyproject_says_the_next(
    version: ModuleType, repository: Path
) -> None:
    commit(repository, pyproject=project("0.2.0"))
    git(repository, "tag", "v0.2.0")
    commit(repository)
    with pytest.raises(version.NoVersion, match=re.escape('such as "0.3.0.dev0"')):
        version.build_version(repository)


def test_without_git_the_version_is_what_pyproject_says(version: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(project("0.2.0.dev0"))
    assert version.build_version(tmp_path) == "0.2.0.dev0"
    version.set_version(tmp_path / "pyproject.toml", "0.2.0.dev7+gabc")
    assert version.build_version(tmp_path) == "0.2.0.dev7+gabc"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """This project as somebody has it who is about to release 9.8.0, on the branch main."""
    place = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{ROOT}", str(place))
    git(place, "switch", "--quiet", "--force-create", "main")
    shutil.copytree(PACKAGE, place / "systemd/package", dirs_exist_ok=True)
    shutil.copy(ROOT / "Makefile", place)
    commit(
        place,
        pyproject=re.sub(r"(?m)^version = .*", 'version = "9.8.0"', (ROOT / "pyproject.toml").read_text(), count=1),
        changelog="# Changelog\n\n## Unreleased\n\n## 9.8.0\n\nIt sings.\n\n## 0.1.0\n\nIt began.\n",
    )
    (tmp_path / "make").write_text(FAKE_MAKE)
    (tmp_path / "make").chmod(0o755)
    return place


def release(clone: Path, version: str = "9.8.0") -> subprocess.CompletedProcess[str]:
    environ = {"MAKE": str(clone.parent / "make"), "FAILS": str(clone.parent / "fails"), "PATH": "/usr/bin:/bin"}
    environ |= {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "a@hippod.invalid"}
    environ |= {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "a@hippod.invalid"}
    command = [sys.executable, "systemd/package/release.py", version]
    return subprocess.run(command, cwd=clone, env=environ, capture_output=True, text=True)


def test_a_release_is_a_tag_and_files_with_checksums_and_notes(clone: Path) -> None:
    made = release(clone)
    assert made.returncode == 0, made.stderr
    assert git(clone, "rev-parse", "v9.8.0^{commit}") == git(clone, "rev-parse", "HEAD")
    dist = clone / "dist/9.8.0"
    assert {path.name for path in dist.iterdir()} == {
        "hippod-9.8.0-py3-none-any.whl",
        "hippod_9.8.0_amd64.deb",
        "hippod_9.8.0_x86_64.image.tar",
        "hippod-9.8.0-notes.md",
        "hippod-9.8.0-SHA256SUMS",
    }
    assert (dist / "hippod-9.8.0-notes.md").read_text() == "It sings.\n"
    assert subprocess.run(["sha256sum", "--check", "--quiet", "hippod-9.8.0-SHA256SUMS"], cwd=dist).returncode == 0
    assert "0.3.0" not in made.stdout and "9.9.0.dev0" in made.stdout
    again = release(clone)
    assert (again.returncode, "the tag v9.8.0 exists already" in again.stderr) == (1, True)


def test_unready_release_is_refused_with_all_reasons_and_without_a_tag(clone: Path) -> None:
    said = release(clone, "9.8")
    assert (said.returncode, "make release VERSION=1.2.3" in said.stderr) == (1, True)
    commit(clone, changelog="# Changelog\n\n## Unreleased\n\nIt dances.\n")
    (clone / "README.md").write_text("changed")
    git(clone, "switch", "--quiet", "--create", "topic")
    said = release(clone, "9.9.0")
    for reason in (
        "1 changed files",
        "the branch is topic",
        'pyproject.toml says version = "9.8.0"',
        "no section `## 9.9.0`",
        "under `## Unreleased`",
    ):
        assert reason in said.stderr, said.stderr
    assert git(clone, "tag") == ""
    assert not (clone / "dist").exists()


def test_a_build_that_fails_leaves_no_tag(clone: Path) -> None:
    (clone.parent / "fails").touch()
    said = release(clone)
    assert (said.returncode, "`make image` failed; nothing is tagged" in said.stderr) == (1, True)
    assert git(clone, "tag") == ""
