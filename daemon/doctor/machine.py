"""Checks Python, the installed packages and programs, the clock, memory, and the limit of open files."""

import platform
import re
import resource
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

import psutil

from consumers.parsing.formats.registry import FORMATS
from consumers.parsing.programs.installed import KNOWN_PROGRAMS, OCR, find_programs
from daemon.config import Config
from daemon.contract.finding import ASK_ROOT, Finding
from daemon.doctor.access_rights import closed
from daemon.observe.resource_use import bytes_below
from daemon.runtime.derived_settings import OPEN_FILES_RECOMMENDED
from daemon.runtime.own_environment import HINT, packages_of_others
from memory.encoder.registry import ENCODER_BACKENDS
from store.lance.layout import table_folder
from store.log.store_lock import lock_owner

OLDEST_PYTHON = (3, 11)
GIB = 1 << 30
CLOCK_TOLERANCE_S = 120.0
MEMORY_PER_STORE_BYTE = 0.15
"""Approximate memory that the system cannot reclaim, per byte of the store's texts and vectors ("Size" in operations.md has the
measurements)."""


def python(version: Sequence[int]) -> Finding:
    if tuple(version[:2]) >= OLDEST_PYTHON:
        return Finding("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return Finding("python", "fail", platform.python_version(), f"install Python {oldest} or newer")


def packages(_config: Config) -> Iterator[Finding]:
    """Checks that the versions pinned by hippod's requirements are installed."""
    try:
        requirements = requires("hippod") or []
    except PackageNotFoundError:
        yield Finding("packages", "warn", "hippod is not installed as a package here", "run `make install`")
        return
    if others := packages_of_others():
        detail = f"this environment also has {', '.join(others)}, which overwrites hippod's files"
        yield Finding("packages", "fail", detail, HINT)
    problems = []
    for line in requirements:
        match = re.match(r"([A-Za-z0-9._-]+)\s*(?:\[[^]]*\])?\s*([^;]*)(;.*)?$", line)
        if match is None or "extra" in (match[3] or ""):
            continue
        name, pin = match[1], re.search(r"==\s*([\w.]+)", match[2])
        try:
            found = version(name)
        except PackageNotFoundError:
            problems.append(f"{name} is missing")
            continue
        if pin is not None and found.partition("+")[0] != pin[1]:
            problems.append(f"{name} is {found}, hippod needs {pin[1]}")
    if problems:
        yield Finding(
            "packages", "fail", "; ".join(problems), "install hippod again: `make install`, or the package again"
        )
    else:
        yield Finding("packages", "ok", f"openvino {version('openvino')}, lancedb {version('lancedb')}")


def memory(config: Config) -> Iterator[Finding]:
    """Checks whether the store and the model fit into the machine's memory."""
    needed = ENCODER_BACKENDS[config.encoder.backend].memory_bytes
    tables = ("passages", "phrases", "triples")
    stored = sum(bytes_below(table_folder(config.store.path, name), ".lance") for name in tables)
    needed += int(stored * MEMORY_PER_STORE_BYTE)
    ram, swap = psutil.virtual_memory(), psutil.swap_memory()
    detail = f"{ram.total / GIB:.1f} GiB, {ram.available / GIB:.1f} free, {swap.total / GIB:.1f} GiB of swap"
    detail += f"; hippod needs about {needed / GIB:.1f} GiB"
    if needed > ram.total + swap.total:
        yield Finding("memory", "fail", detail, "use a machine with more memory, or a smaller encoder")
    elif needed > ram.total * 0.8:
        yield Finding("memory", "warn", detail, "give the machine more memory, or hippod may swap")
    elif any(closed(table_folder(config.store.path, name)) for name in tables):
        yield Finding("memory", "warn", f"{detail} in addition to its store, which this user cannot see", ASK_ROOT)
    else:
        yield Finding("memory", "ok", detail)


def open_files(config: Config) -> Iterator[Finding]:
    """Checks the limit of open files of the running hippod, or else of this process."""
    pid = lock_owner(config.store.path)
    hard = _open_files_limit(pid) if pid is not None else None
    if hard is None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    unlimited = hard in (resource.RLIM_INFINITY, -1)
    sides = 1 if config.api.tcp is None else 2
    detail = f"{'any number of' if unlimited else f'{hard:,}'} open files" + (f" for process {pid}" if pid else "")
    if not unlimited and hard < max(
        OPEN_FILES_RECOMMENDED, config.api.connections * sides + OPEN_FILES_RECOMMENDED // 4
    ):
        hint = "raise it: LimitNOFILE=65536 in the unit, or `ulimit -Hn 65536` before the start"
        yield Finding("open files", "warn", f"only {detail}", hint)
    else:
        yield Finding("open files", "ok", detail)


def _open_files_limit(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    except OSError:
        return None
    line = next((line for line in lines if line.startswith("Max open files")), "")
    words = line.split()
    return None if len(words) < 5 else -1 if words[4] == "unlimited" else int(words[4])


def clock(now: float, passed: float, event: str) -> Finding:
    """Warns if `now` is before the past `event`, which happened at `passed` (both in Unix seconds)."""
    text = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(now))
    if now + CLOCK_TOLERANCE_S >= passed:
        return Finding("clock", "ok", text)
    when = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(passed))
    hint = "set the clock, or start a time service (timedatectl)"
    return Finding("clock", "warn", f"{text}, which is before {event} ({when})", hint)


def formats(_config: Config) -> Iterator[Finding]:
    for each in FORMATS:
        if missing := [library for library in each.libraries if find_spec(library) is None]:
            hint = "install hippod again: `make install`, or the package again"
            yield Finding("formats", "fail", f"{each.title} cannot be read without {', '.join(missing)}", hint)
            return
    yield Finding("formats", "ok", ", ".join(each.title for each in FORMATS))


def programs(config: Config) -> Iterator[Finding]:
    """Yields a finding for each external program. A missing program is no problem: documents that need it are skipped."""
    parsing = config.parsing
    found = find_programs(parsing.ocr, parsing.ocr_languages)
    for key, known in KNOWN_PROGRAMS.items():
        program = found.get(key)
        if program is not None and program.missing_languages:
            packages = " ".join(f"tesseract-ocr-{each.replace('_', '-')}" for each in program.missing_languages)
            detail = f"{program.identity}: not installed for {', '.join(program.missing_languages)}"
            yield Finding(known.title, "warn", detail, f"install {packages}, or correct [parsing] ocr_languages")
        elif program is not None:
            yield Finding(known.title, "ok", program.identity)
        elif key == OCR and parsing.ocr == "off":
            yield Finding(known.title, "ok", 'not used: [parsing] ocr = "off"')
        else:
            yield Finding(known.title, "ok", f"not installed: {known.purpose} are skipped; install {known.package}")
