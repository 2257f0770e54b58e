"""Helpers for measuring: times, concurrent work, memory of a process, and steps in processes of their own."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

MIB = 1 << 20


def seconds(action: Callable[[], object]) -> float:
    """Runs `action` and returns its duration."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


@contextmanager
def repeated(*actions: Callable[[], object]) -> Iterator[None]:
    """Repeats each action in its own thread until the end of the `with` block, which raises the first exception of a thread."""
    over = threading.Event()

    def repeat(action: Callable[[], object]) -> None:
        while not over.is_set():
            action()

    with ThreadPoolExecutor(len(actions) or 1) as threads:
        running = [threads.submit(repeat, action) for action in actions]
        try:
            yield
        finally:
            over.set()
    for ended in running:
        ended.result()


def status_kb(name: str, pid: int | str = "self") -> int:
    """Returns a value of /proc/PID/status in kilobytes, such as VmRSS (resident) or VmHWM (its maximum so far)."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def resident_mb() -> int:
    return status_kb("VmRSS") // 1024


def peak_mib(pid: int | str = "self") -> int:
    return status_kb("VmHWM", pid) // 1024


def resident_bytes(process: psutil.Process) -> tuple[int, int]:
    """Returns the resident memory of a process alone, and with its children. Shared pages count for each process."""
    own = children = process.memory_info().rss
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            children += child.memory_info().rss
    return own, children


def mapped_files(pid: int) -> int:
    """Returns the number of a process's descriptors of checkpoint files, each open while the file is mapped."""
    count = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            count += "/snapshot" in str(descriptor.readlink())
    return count


def run_step(program: str, name: str, *arguments: str) -> dict[str, Any]:
    """Runs one step of the module `program` in a separate process, prints its result, and returns it. A step that fails returns
    its exit code as `NAME_failed`."""
    began = time.perf_counter()
    command = [sys.executable, "-m", program, name, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    found = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {f"{name}_failed": done.returncode}
    described = " ".join(argument for argument in arguments if not argument.startswith("/"))
    print(f"{name} {described} ({time.perf_counter() - began:.0f} s): {json.dumps(found)}", flush=True)
    return found
