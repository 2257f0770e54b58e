"""An import that the disk refuses is answered with the reason, and leaves no file."""

import asyncio
import resource
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from daemon.errors import NotReady
from daemon.services.transfer import TransferService


async def body() -> AsyncIterator[bytes]:
    for _ in range(8):
        yield b"x" * 65536


def test_import_refused_by_the_disk_names_the_reason_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    nothing: Any = None
    service = TransferService(*[nothing] * 6)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(NotReady, match="File too large"):
            asyncio.run(service.import_openie(body()))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(NotReady, match="No such file"):
        asyncio.run(service.import_openie(body()))
