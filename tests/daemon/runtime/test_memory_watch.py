"""The resolved `[store] memory_limit`, and when the intake pauses and continues."""

import asyncio
import resource
from collections.abc import Callable, Coroutine
from pathlib import Path

import psutil
import pytest

from consumers.types import FileChanged, FileRemoved, Fingerprint
from daemon.pipeline.incoming.intake import Intake
from daemon.pipeline.work_items import Work
from daemon.runtime.memory_watch import AUTO_SHARE, MemoryWatch, limit_bytes, machine_bytes

MIB = 1 << 20


def in_event_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    return lambda: asyncio.run(test())


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("0::/a/b", {"a/memory.max": "512", "a/b/memory.max": "max"}),
        ("0::/box", {"box/memory.max": "900", "box/memory.high": "512"}),
        ("4:cpu,memory:/box", {"memory/memory.limit_in_bytes": "900", "memory/box/memory.limit_in_bytes": "512"}),
    ],
    ids=["of a group above", "high before max", "version 1"],
)  # fmt: skip
def test_machine_memory_is_the_smallest_cgroup_limit(tmp_path: Path, line: str, files: dict[str, str]) -> None:
    for name, value in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(value if value == "max" else str(int(value) * MIB))
    (tmp_path / "cgroup").write_text(line + "\n")
    assert machine_bytes(tmp_path / "cgroup", tmp_path) == 512 * MIB
    (tmp_path / "cgroup").write_text("0::/elsewhere\n")
    assert machine_bytes(tmp_path / "cgroup", tmp_path / "none") == psutil.virtual_memory().total


def test_memory_limit_is_a_size_a_share_of_the_machine_or_off() -> None:
    assert limit_bytes(5 * MIB) == 5 * MIB
    assert limit_bytes("auto") == int(AUTO_SHARE * machine_bytes())
    assert limit_bytes("off") is None


@in_event_loop
async def test_intake_takes_only_removals_near_the_memory_limit() -> None:
    held, intake = 94 * MIB, Intake()
    watch = MemoryWatch(lambda: 100 * MIB, 0, lambda: 0, intake, lambda: held)
    changed = FileChanged("file:///a", b"/a", "/", Fingerprint(1, 1, 1))
    intake.put(Work("file:///a", changed, "/"))
    intake.put(Work("file:///b", FileRemoved("file:///b", "/"), "/"))
    await watch.check()
    before = intake.paused
    held = 95 * MIB
    await watch.check()
    assert before is None and intake.paused is not None
    waiting = asyncio.create_task(intake.room())
    removal = intake.take()
    assert removal is not None
    assert removal.key == "file:///b"
    assert intake.take() is None
    held = 91 * MIB  # below the pause threshold: the intake continues only once there is some room
    await watch.check()
    assert intake.take() is None
    assert not waiting.done()
    held = 89 * MIB
    await watch.check()
    await waiting
    added = intake.take()
    assert added is not None
    assert added.key == "file:///a"


@in_event_loop
async def test_memory_watch_continues_after_running_out_of_file_descriptors() -> None:
    checks = 0

    def used_bytes() -> int:
        nonlocal checks
        checks += 1
        return 0

    watch = MemoryWatch(lambda: "auto", 0, lambda: 0, Intake(), used_bytes)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        running = asyncio.create_task(watch.run())
        await asyncio.sleep(0.1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    async with asyncio.timeout(20):
        while not checks and not running.done():
            await asyncio.sleep(0.05)
    assert checks and not running.done()
    running.cancel()


@in_event_loop
async def test_latest_work_of_a_key_decides_whether_it_waits_for_memory() -> None:
    intake = Intake()
    intake.pause("for a test")
    changed = FileChanged("file:///a", b"/a", "/", Fingerprint(1, 1, 1))
    intake.put(Work("file:///a", changed, "/"))
    intake.put(Work("file:///a", FileRemoved("file:///a", "/"), "/"))
    work = intake.put(Work("file:///a", changed, "/"))
    assert intake.take() is None
    assert intake.take(work) is None
    intake.put(Work("file:///a", FileRemoved("file:///a", "/"), "/"))
    taken = intake.take()
    assert taken is not None
    assert isinstance(taken.task, FileRemoved)
