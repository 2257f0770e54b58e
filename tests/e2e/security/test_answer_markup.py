"""A found document tries to make the reader's program send a request: images, HTML and links in texts, titles and answers."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.daemon.api.test_safe_markdown import assert_harmless
from tests.e2e.real_hippod import Daemon
from tests.memory.llm.model_server import Call, ModelServer, obedient

pytestmark = pytest.mark.daemon

ATTACK = (
    "![pixel](https://evil.example/p.png) <img src='https://evil.example/p.png'> <svg onload=alert(1)> "
    "[open](javascript:alert(1)) <javascript:alert(1)> ftp://evil.example/x ![ref][r] \\\\![twice](//evil.example/p) "
    "[r]: https://evil.example/q.png"
)
OWN = ("file:", "added:")
QUESTION = [{"role": "user", "content": "Who built the mill of Ternby?"}]


def repeating(call: Call) -> Any:
    if call.purpose == "answer":
        sentences = [{"text": f"Solveig Aas built it. {ATTACK}", "sources": [1, 2]}, {"text": ATTACK, "sources": []}]
        return {"found": True, "sentences": sentences, "short": "Solveig Aas"}
    return obedient(call)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with ModelServer(repeating) as model:
        llm = {"base_url": model.url, "model": "test-model", "timeout_s": 60.0, "max_retries": 0}
        with Daemon(tmp_path_factory.mktemp("markup"), llm=llm, retrieval={"filter": "none"}) as running:
            running.write("mill ![x](y) <b>.md", f"# {ATTACK}\n\nSolveig Aas built the mill of Ternby. {ATTACK}\n")
            running.add({"id": "](javascript:x)", "title": ATTACK, "text": f"The mill of Ternby.\n\n{ATTACK}"})
            running.wait()
            yield running


def chat(daemon: Daemon, model: str) -> str:
    answer = daemon.ask("POST", "/v1/chat/completions", json={"model": model, "messages": QUESTION})
    return str(answer["choices"][0]["message"]["content"])


def streamed(daemon: Daemon, model: str) -> tuple[str, list[str]]:
    """Returns the answer, and the text received after each piece."""
    body = {"model": model, "messages": QUESTION, "stream": True}
    seen = [""]
    with daemon.http.stream("POST", "/v1/chat/completions", json=body) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    seen.append(seen[-1] + choice["delta"].get("content", ""))
    return seen[-1], seen


@pytest.mark.parametrize("model", ["hippod", "hippod-search"])
def test_no_part_of_a_chat_answer_sends_a_request(daemon: Daemon, model: str) -> None:
    whole = chat(daemon, model)
    assert "evil.example" in whole and "pixel" in whole, "the reader sees what was there"
    assert_harmless(whole, OWN)
    text, seen = streamed(daemon, model)
    assert text == whole
    assert len(seen) > 3
    for each in seen:
        assert_harmless(each, OWN)
