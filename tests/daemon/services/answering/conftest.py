"""One hippod and one scripted model for all tests here, over the toy memory of the working memory's tests."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.real_hippod import Daemon, Json
from tests.memory.answering.working_memory.toy import PASSAGES, QUESTION
from tests.memory.llm.model_server import ModelServer, Script, obedient


def documents() -> list[Json]:
    return [{"id": id, "title": id, "text": text, "triples": triples} for id, (text, triples) in PASSAGES.items()]


@dataclass
class Asking:
    """The daemon and its model. `ask` sends a question and fails if it is refused."""

    daemon: Daemon
    model: ModelServer

    def post(self, **body: Any) -> Any:
        return self.daemon.http.post("/v1/ask", json={"question": QUESTION} | body)

    def ask(self, script: Script | None = None, **body: Any) -> Json:
        if script is not None:
            self.model.script = script
        response = self.post(**body)
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        return answer

    def streamed(self, **body: Any) -> list[tuple[str, Any]]:
        """Returns all events of a streamed answer."""
        with self.daemon.http.stream(
            "POST", "/v1/ask", json={"question": QUESTION} | body, headers={"accept": "text/event-stream"}
        ) as response:
            lines = [line.partition(": ") for line in response.iter_lines()]
        names = [value for name, _, value in lines if name == "event"]
        return list(zip(names, [json.loads(value) for name, _, value in lines if name == "data"], strict=True))

    @property
    def purposes(self) -> list[str]:
        """Purposes of the model's calls since the test began."""
        return [call.purpose for call in self.model.calls]


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    with ModelServer(obedient) as model:
        daemon = Daemon(
            tmp_path_factory.mktemp("asking"),
            llm={"base_url": model.url, "model": "test-model", "timeout_s": 60.0, "max_retries": 0},
            retrieval={"filter": "none"},
        )
        try:
            daemon.start()
            daemon.add(*documents())
            daemon.wait()
            yield Asking(daemon, model)
        finally:
            daemon.close()
            print(f"--- logged:\n{daemon.log_text()[-6000:]}")


@pytest.fixture
def asking(running: Asking) -> Iterator[Asking]:
    running.model.script = obedient
    running.model.calls.clear()
    yield running
    running.model.script = obedient


Thoughts = Callable[..., Script]


@pytest.fixture
def thinking() -> Thoughts:
    """`thinking("first", "second")`: a model with these thoughts. A thought answers the question if it ends with "!"."""

    def make(*thoughts: str, answer: Any = None) -> Script:
        left = list(thoughts)

        def script(call: Any) -> Any:
            if call.purpose == "thought":
                text = left.pop(0)
                return {"thought": text, "sources": [1, 99, "two"], "answers": text.endswith("!")}
            return answer if call.purpose == "answer" and answer is not None else obedient(call)

        return script

    return make
