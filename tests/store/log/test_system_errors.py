"""A full or read-only disk is no damage, and the advice is not to restore a backup."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from store.errors import StoreDamaged, StoreError, StoreLocked, StoreRefused, refusal
from store.lance.checksums import Checksums
from store.lance.layout import DATA, table_folder
from store.log.store_lock import StoreLock
from tests.store.small_store import complete, numbered_documents, open_store


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "make room"),
        (OSError("LanceError(IO): Generic LocalFileSystem error: Permission denied (os error 13)"), "chown -R"),
        (RuntimeError("lance error: Read-only file system (os error 30), object_store.rs"), "ReadWritePaths="),
        (OSError(errno.EMFILE, "Too many open files"), "LimitNOFILE="),
        (OSError("lance error: Too many open files in system (os error 23)"), "fs.file-max"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "MemoryMax="),
        (MemoryError(), "MemoryMax="),
        (OSError(errno.ESTALE, "Stale file handle"), "mount it again"),
        (OSError(errno.ETIMEDOUT, "Connection timed out"), "nothing is damaged"),
        (OSError(errno.ENOENT, "No such file or directory"), None),
        (OSError("Object at location /x/manifest not found"), None),
        (ValueError("Not a Lance dataset"), None),
    ],
)
def test_system_errors_are_distinguished_from_damage(error: Exception, advice: str | None) -> None:
    found = refusal(error)
    assert found is None if advice is None else found is not None and advice in found


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes files read-only, like another unit's store under ProtectSystem=strict."""
    really = os.open

    def opened(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return really(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", opened)


def test_lock_error_of_read_only_store_names_the_owner_process(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with StoreLock(tmp_path):
        request.getfixturevalue("read_only")
        with pytest.raises(StoreLocked, match=f"is open in hippod with pid {os.getpid()}"):
            StoreLock(tmp_path)


def test_unlocked_read_only_store_is_refused_with_advice(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    StoreLock(tmp_path).release()
    request.getfixturevalue("read_only")
    with pytest.raises(StoreRefused, match=r"Read-only file system.*ReadWritePaths="):
        StoreLock(tmp_path)
    (tmp_path / "lock").unlink()
    with pytest.raises(StoreRefused, match="Read-only file system"):
        StoreLock(tmp_path)


def test_error_of_a_failed_opening_distinguishes_damage_from_system_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 2), []))
        store.compact()

    def error_of(cause: Exception) -> StoreError:
        def fails(*_: object) -> None:
            raise cause

        monkeypatch.setattr("store.store.recover_index", fails)
        with pytest.raises(StoreError) as caught:
            open_store(tmp_path)
        assert "backup" in str(caught.value) or not isinstance(caught.value, StoreDamaged)
        return caught.value

    for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.EIO):
        refused = error_of(OSError(number, os.strerror(number)))
        assert isinstance(refused, StoreRefused) and "backup" not in str(refused)
    assert isinstance(error_of(MemoryError()), StoreRefused)
    for fault in (KeyError("x"), IndexError("x")):
        assert "an error in hippod" in str(error_of(fault)) and type(error_of(fault)) is StoreError
    assert isinstance(error_of(ValueError("wrong content")), StoreDamaged)

    def checked(*_: object) -> None:
        with pytest.raises(StoreLocked):
            StoreLock(tmp_path)

    with monkeypatch.context() as patched:
        patched.setattr(Checksums, "check_all", checked)
        error_of(KeyError("x"))
    file = next((table_folder(tmp_path, "phrases") / DATA).iterdir())
    content = file.read_bytes()
    file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    assert isinstance(error_of(KeyError("x")), StoreDamaged)
