"""Doctor compares the number of watched directories with the kernel's limits."""

from pathlib import Path

import pytest

from daemon.contract.finding import Finding
from daemon.sources import folder_checks
from daemon.sources.folder_checks import inotify, inspect_folders


def test_too_few_inotify_watches_for_the_folders_are_a_warning(tmp_path: Path) -> None:
    (tmp_path / "drive/a/b").mkdir(parents=True)
    limits = tmp_path / "limits"
    limits.mkdir()
    (limits / "max_user_instances").write_text("128\n")
    for most, status in (("100\n", "ok"), ("3\n", "warn")):
        (limits / "max_user_watches").write_text(most)
        found = inotify([tmp_path / "drive"], limits)
        assert (found.status, "3 directories" in found.detail) == (status, True)
    assert inotify([tmp_path], tmp_path / "absent").status == "warn"


def test_a_polled_folder_takes_no_watches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Setting `polling = true`, as the hint suggests, ends the warning."""
    (tmp_path / "drive/a/b").mkdir(parents=True)
    limits = tmp_path / "limits"
    limits.mkdir()
    (limits / "max_user_watches").write_text("3\n")
    monkeypatch.setattr(folder_checks, "INOTIFY_LIMITS", limits)

    def found(polling: bool) -> Finding:
        return next(each for each in inspect_folders([(tmp_path / "drive", polling)]) if each.name == "inotify")

    assert [found(polling).status for polling in (False, True)] == ["warn", "ok"]
    (limits / "max_user_watches").unlink()
    assert found(polling=True).status == "ok"
