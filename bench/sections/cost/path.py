"""The path of a text through the code: from a saved note to the commit, and from a question to the answer.

A file or a data class is on the path if the text passes through it as an argument or a part of an argument
(`bench.support.content_trace`). The path does not depend on the machine.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from bench.support.content_trace import MARK, ROOT
from bench.support.tables import table
from tests.e2e.real_hippod import Daemon, clean_environment, until

NOTE = f"# Tours\n\nThe {MARK} expedition of Clara Weber reached Lake Tanaka in 1932. Clara Weber was born in Bremen.\n"
QUESTION = f"Where was the leader of the {MARK} expedition born?"
TEXT_RULES = ("consumers/parsing/", "memory/openie/")
"""Folders of the parsers and of the rules, whose files depend on the text."""


class TracedDaemon(Daemon):
    """A daemon that records what a marked text passes through."""

    def launch(self) -> "TracedDaemon":
        program = [sys.executable, "-m", "bench.support.content_trace"]
        command = [*program, str(self.home), "hippod", "--config", str(self.config)]
        environment = clean_environment(self.home)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        return self

    def record(self, phase: str) -> None:
        """Begins a phase in all processes; they write their records of the previous phase."""
        written = self.home / "phase.new"
        written.write_text(phase, "utf-8")
        written.replace(self.home / "phase")
        begun = list(self.home.glob("begun-*"))
        until(lambda: all(each.read_text("utf-8") == phase for each in begun), f"all processes record {phase}")


def run(results: dict[str, Any]) -> str:
    with tempfile.TemporaryDirectory(prefix="hippod-path-") as place:
        daemon = TracedDaemon(Path(place), preloaded=False, encoder={"backend": "sentence-transformers"})
        with daemon:
            daemon.write("first.md", "# Nordhaus\n\nAnna Keller founded the brewery Nordhaus in Bremen in 1921.\n")
            daemon.wait()
            daemon.record("saved note")
            daemon.write("note.md", NOTE)
            daemon.wait()
            daemon.record("question")
            assert MARK in json.dumps(daemon.ask("POST", "/v1/query", json={"query": QUESTION}))
            daemon.record("end")
            rows = [_row(daemon.home, phase, results) for phase in ("saved note", "question")]
    return table(("text", "files", "without parsers and rules", "data classes"), rows)


def _row(home: Path, phase: str, results: dict[str, Any]) -> tuple[object, ...]:
    functions: set[str] = set()
    classes: set[str] = set()
    for file in home.glob(f"{phase}-*.json"):
        found = json.loads(file.read_text("utf-8"))
        functions |= set(found["functions"])
        classes |= set(found["classes"])
    files = Counter(each.partition(":")[0] for each in functions)
    results[phase] = {"functions": sorted(functions), "classes": sorted(classes)}
    others = [file for file in files if not file.startswith(TEXT_RULES)]
    return phase, len(files), len(others), len(classes)
