"""A thousand nearly valid inputs end no process and block none. `make bench` tries a hundred thousand."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.real_hippod import ROOT, clean_environment
from tests.fuzz.running import Fuzzed, fuzz

pytestmark = pytest.mark.process

INPUTS = 1_000


def failure_lines(found: list[Fuzzed]) -> str:
    return "\n".join(f"{each.name}: {file}: {what}" for each in found for file, what in each.failures.items())


@pytest.mark.timeout(300)
def test_no_fuzz_input_crashes_or_slows_the_process(tmp_path: Path) -> None:
    found = fuzz(tmp_path, INPUTS, number=11, patience_s=280)
    assert not failure_lines(found), failure_lines(found)
    assert sum(each.inputs for each in found) >= INPUTS - 10
    assert {each.name for each in found} >= {
        "configuration",
        "json-documents",
        "json-lines",
        "files",
        "openie-files",
        "kafka-values",
        "queries",
    }
    assert all(Path(each.slowest).exists() for each in found if each.slowest_s)


SPOILED = """
import sys, time
from pathlib import Path
from tests.fuzz import running, targets

def bad(data):
    {fault}

running.LIMIT_S = 0.05
known = {{"bad": targets.Target(targets.inputs.json_documents, bad, 1.0)}}
found = running._run(Path(sys.argv[1]), "bad", known["bad"], 20, 1)
print(found.failed, sorted(found.failures.values())[:1])
"""


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raise KeyError('inside')", '20 ["KeyError at'),
        (
            "began = time.process_time()\n    while time.process_time() - began < 0.06: pass",
            "s of processor time",
        ),
    ],
)
def test_fuzzer_reports_an_exception_or_slow_input_and_keeps_the_input(tmp_path: Path, fault: str, said: str) -> None:
    """Checks the harness: an exception and a slow input are reported, with the input kept."""
    done = subprocess.run(
        [sys.executable, "-c", SPOILED.format(fault=fault), str(tmp_path)],
        cwd=ROOT,
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert said in done.stdout, done
    assert list((tmp_path / "found" / "bad").iterdir())


def test_a_process_that_ends_counts_as_a_failure(tmp_path: Path) -> None:
    [lost] = fuzz(tmp_path, 1, number=1, names=["no such target"], patience_s=100)
    assert (lost.name, lost.failed) == ("process", 1)
    assert "the process ended with 1" in failure_lines([lost])
