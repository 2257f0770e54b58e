"""Runs hippod, or one of its parser processes, and records the functions and data classes through which a marked text passes.

`python -m bench.support.content_trace FOLDER hippod ARGUMENT …`. While FOLDER/phase contains a name, each call of a function of
hippod is examined: a function counts if one of its arguments is a text with `MARK`, or a list, a dict or a data class that
contains such a text. When the name changes, each process writes FOLDER/NAME-PID.json.
"""

import asyncio
import json
import os
import runpy
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

MARK = "zanzibarquokka"
PROGRAMS = {"hippod": "daemon.main", "parser": "daemon.parser_pool.child_main"}
ROOT = Path(__file__).parents[2]
PACKAGES = ("consumers", "memory", "store", "daemon", "cli")
DEPTH = 5
"""Number of levels of lists, dicts and data classes searched for the text."""
ITEMS = 40
"""Number of items of a list or dict that are searched."""
POLL_S = 0.05


class Recorder:
    """Records one phase at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._phase = ""
        self._functions: set[str] = set()
        self._classes: set[str] = set()
        self._busy = threading.local()

    def profile(self, frame: FrameType, event: str, _argument: object) -> None:
        """The function for `sys.setprofile`."""
        code = frame.f_code
        name = code.co_filename.removeprefix(f"{ROOT}/")
        if event != "call" or not self._phase or not name.startswith(PACKAGES) or getattr(self._busy, "on", False):
            return
        self._busy.on = True  # reading a property calls functions
        try:
            known = frame.f_locals
            # The last two argument names may be *args and **kwargs.
            arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]
            if [each for each in arguments if each in known and self._contains(known[each], DEPTH)]:
                self._functions.add(f"{name}:{code.co_qualname}")
        finally:
            self._busy.on = False

    def _contains(self, value: Any, depth: int) -> bool:
        """Whether the value contains the marked text. Adds the data classes that contain the text to `_classes`."""
        if isinstance(value, str):
            return MARK in value
        if isinstance(value, bytes | bytearray):
            return MARK.encode() in value
        if not depth:
            return False
        if isinstance(value, list | tuple | set | frozenset | dict):
            items = value.values() if isinstance(value, dict) else value
            # All items are searched, because their classes may differ.
            return bool([item for item in list(items)[:ITEMS] if self._contains(item, depth - 1)])
        kind = type(value)
        if not kind.__module__.startswith(PACKAGES):
            return False
        fields = {**getattr(kind, "__dataclass_fields__", {}), **getattr(kind, "model_fields", {})}
        found = [each for each in fields if self._contains(getattr(value, each, None), depth - 1)]
        if found:
            self._classes.add(f"{kind.__module__}.{kind.__qualname__}")
        return bool(found)

    def follow_phases(self) -> None:
        """Polls the phase. When it changes, writes the records of the last phase, and then the new phase to begun-PID."""
        begun = self._folder / f"begun-{os.getpid()}"
        begun.touch()
        while True:
            file = self._folder / "phase"
            phase = file.read_text("utf-8") if file.exists() else ""
            if phase != self._phase:
                ended, self._phase = self._phase, ""
                found = {"functions": sorted(self._functions), "classes": sorted(self._classes)}
                if ended:
                    (self._folder / f"{ended}-{os.getpid()}.json").write_text(json.dumps(found), "utf-8")
                self._functions, self._classes, self._phase = set(), set(), phase
                begun.write_text(phase, "utf-8")
            time.sleep(POLL_S)


def main(folder: Path, program: str, arguments: list[str]) -> None:
    recorder = Recorder(folder)
    threading.Thread(target=recorder.follow_phases, daemon=True).start()
    threading.setprofile(recorder.profile)
    sys.setprofile(recorder.profile)
    start = asyncio.create_subprocess_exec

    async def start_traced(*command: Any, **options: Any) -> asyncio.subprocess.Process:
        words = list(command)
        if PROGRAMS["parser"] in words:
            at = words.index(PROGRAMS["parser"])
            words[at - 1 : at + 1] = [__file__, folder, "parser"]
        return await start(*words, **options)

    asyncio.create_subprocess_exec = start_traced
    sys.path.insert(0, str(ROOT))
    sys.argv = [program, *arguments]
    runpy.run_module(PROGRAMS[program], run_name="__main__")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
