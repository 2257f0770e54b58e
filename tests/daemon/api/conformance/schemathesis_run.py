"""Runs schemathesis against a real hippod, over TCP with a token: valid requests from `/openapi.json` and requests that break
one rule, with every answer checked against the same document."""

import base64
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.real_hippod import ROOT, Daemon, Json, clean_environment
from tests.memory.llm.model_server import ModelServer, obedient

TOKEN = "a-secret-of-the-tests"
SETTINGS = """
hooks = "tests.daemon.api.conformance.hooks"
request-timeout = 60
warnings = false
[output.sanitization]
enabled = false
[cache]
enabled = false
[generation]
database = "none"
[[operations]]
include-path = "/v1/events"
request-timeout = 0.2
max-stream-events = 1
"""
"""The stream of events never ends, so only its beginning is read."""


@dataclass
class Report:
    """`answers`: number of answers by operation and status. `failures`: undocumented behaviour, with the request."""

    answers: dict[str, Counter[int]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    output: str = ""

    @property
    def requests(self) -> int:
        return sum(counts.total() for counts in self.answers.values())

    def statuses(self) -> Counter[int]:
        return sum(self.answers.values(), Counter())


@contextmanager
def served(home: Path) -> Iterator[tuple[Daemon, str, list[str]]]:
    """Yields a daemon with a dozen documents and a model server, its TCP address, and existing keys."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{chosen.getsockname()[1]}"
    home.mkdir(parents=True, exist_ok=True)
    token = home / "token"
    token.write_text(TOKEN)
    with ModelServer(obedient) as model:
        daemon = Daemon(
            home, api={"tcp": address, "token_file": str(token)}, llm={"base_url": model.url, "model": "test-model"}
        )
        for file in sorted((ROOT / "examples" / "drive").rglob("*.md"))[:12]:
            daemon.write(file.name, file.read_bytes())
        try:
            daemon.start().wait()
            yield daemon, address, _known(daemon)
        finally:
            daemon.close()


def _known(daemon: Daemon) -> list[str]:
    """Returns passages, phrases and triples. No document: schemathesis does not encode the slashes of a URI."""
    found = daemon.ask("POST", "/v1/query", json={"query": "Who works at the harbour office?", "k": 2})
    passages, triples = found["passages"], found["triples"]
    names = [passage["id"] for passage in passages]
    stated = [json.dumps([triple["subject"], triple["predicate"], triple["object"]]) for triple in triples[:2]]
    return [*names, *stated, *(triple["subject"] for triple in triples[:2])]


def check(daemon: Daemon, address: str, known: list[str], *options: str, timeout_s: float) -> Report:
    """Runs schemathesis with these options to its end; returns its report."""
    settings, report = daemon.home / "schemathesis.toml", daemon.home / "report.ndjson"
    settings.write_text(SETTINGS)
    scratch = daemon.home / "backups"
    scratch.mkdir(exist_ok=True)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings)),
            *("run", f"http://{address}/openapi.json", "--header", f"Authorization: Bearer {TOKEN}"),
            *("--no-color", "--continue-on-failure", "--report-ndjson-path", str(report), *options),
        ],
        env=clean_environment(daemon.home)
        | {"PATH": os.environ["PATH"], "HIPPOD_API_SCRATCH": str(scratch), "HIPPOD_API_KNOWN": json.dumps(known)},
        cwd=daemon.home,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    found = Report(output=done.stdout + done.stderr)
    for line in report.read_text("utf-8").splitlines() if report.exists() else ():
        _count(found, json.loads(line))
    if done.returncode and not found.failures:
        found.failures.append(f"schemathesis ended with {done.returncode}")
    return found


def _count(found: Report, event: Json) -> None:
    """Adds one line of schemathesis' report: the requests of one scenario, and the results of its checks."""
    scenario = event.get("ScenarioFinished", {}).get("recorder", {})
    for case, sent in scenario.get("interactions", {}).items():
        made = scenario["cases"][case]["value"]
        operation = f"{made['method']} {made['path']}"
        request, answer = sent["request"], sent.get("response")
        status = answer["status_code"] if answer else 0
        found.answers.setdefault(operation, Counter())[status] += 1
        reported = [
            check["failure_info"]["failure"]["message"]
            for check in scenario["checks"].get(case, ())
            if check["status"] == "failure"
        ]
        if not answer:
            reported.append("there was no answer")
        if reported:
            body, content = _text(request.get("body")), _text((answer or {}).get("content"))
            found.failures.append(
                f"{operation} {request['uri']}\n{body}\n-> {status} {content}\n" + "\n".join(reported)
            )


def _text(body: Json | None) -> str:
    return base64.b64decode((body or {}).get("$base64", "")).decode("utf-8", "replace")[:2000]
