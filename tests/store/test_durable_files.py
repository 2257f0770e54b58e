"""Helpers for files that survive a crash."""

from pathlib import Path

from store.durable_files import new_folder_before_restore


def test_restores_within_one_second_get_folders_of_their_own(tmp_path: Path) -> None:
    made = [new_folder_before_restore(tmp_path) for _ in range(4)]
    assert sorted(tmp_path.iterdir()) == sorted(made)
    assert all(folder.name.startswith("before-restore-") for folder in made)
