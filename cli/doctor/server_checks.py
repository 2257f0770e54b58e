"""What only the daemon's own code can look at: `hippod --inspect`, run beside hippoctl, whether or not a daemon runs."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cli.text import one_line, truncate
from daemon.contract.finding import Finding, Verdict

INSPECT_S = 150.0
"""A model's server that was idle may take its time, an embeddings' server, and each broker."""


def inspection(path: Path, hippod: str) -> Iterator[Finding]:
    """Its findings as checks; the configuration must be valid."""
    try:
        done = subprocess.run(  # noqa: S603 - the program installed beside this one, no shell
            [hippod, "--config", str(path), "--inspect"], capture_output=True, timeout=INSPECT_S, check=False
        )
        found = json.loads(done.stdout)["findings"]
    except subprocess.TimeoutExpired:
        hint = "something it looked at hangs: a drive, or a server; run `hippod --inspect` to see how far it comes"
        yield Finding("inspection", "fail", f"not finished within {INSPECT_S:g} s", hint)
        return
    except (OSError, ValueError, KeyError, TypeError):
        said = one_line(done.stderr.decode("utf-8", "replace")) if "done" in locals() else "it cannot be run"
        yield Finding("inspection", "fail", truncate(said, 400) or "it says nothing", "install hippod anew")
        return
    yield from map(_check, found)


def _check(found: Mapping[str, Any]) -> Finding:
    status: Verdict = "fail" if found["status"] == "fail" else "ok" if found["status"] == "ok" else "warn"
    detail, hint = (one_line(str(found.get(key, ""))) for key in ("detail", "hint"))
    return Finding(one_line(str(found["name"])), status, detail, hint)
