"""`transformers serve` with a model of random weights: it has no JSON by schema and says so to nobody."""

import asyncio
import os
import socket
import subprocess
import urllib.error
import urllib.request
from itertools import pairwise
from pathlib import Path

import pytest

from memory.llm.client import ModelClient, ModelSettings
from memory.llm.errors import ModelDown, ModelRefused
from memory.openie.llm.extractor import parse_entities
from memory.openie.llm.prompts import ENTITIES_SCHEMA, entity_messages
from store.types import PassageText
from tests.e2e.real_hippod import until
from tests.memory.llm.servers.llama_server import PYTHON

pytestmark = [
    pytest.mark.model_server,
    pytest.mark.skipif(PYTHON is None, reason="transformers is not installed: make test-servers"),
]
PASSAGE = PassageText("k", "Skellan Light", "Ada Kerr built Skellan Light in 1868.")
ANSWER_TOKENS = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address, the model's name, and what happened to a call that came while it loaded."""
    folder = tmp_path_factory.mktemp("transformers")
    model = folder / "model"
    subprocess.run([str(PYTHON), str(Path(__file__).with_name("random_transformers.py")), str(model)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(PYTHON), "-m", "transformers.cli.transformers", "serve", str(model)]
    environ = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("w") as log:
        serving = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"],
            stdout=log,
            stderr=log,
            env=environ,
        )
    address = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert serving.poll() is None, (folder / "log").read_text()
        try:
            return bool(urllib.request.urlopen(f"{address}/health", timeout=5).status == 200)
        except urllib.error.HTTPError:
            return False
        except OSError:
            return False

    early = asking(f"{address}/v1", str(model), lambda client: client.probe())
    try:
        until(answers, "the server has loaded its model")
        yield f"{address}/v1", str(model), early
    finally:
        serving.kill()
        serving.wait()


def asking(url, model, work):
    """What `work(client)` gives or raises, and the outcomes of its calls."""
    outcomes: list[tuple[str, str]] = []

    async def run():
        settings = ModelSettings(url, model, timeout_s=120.0, max_retries=0)
        client = ModelClient(settings, lambda purpose, outcome: outcomes.append((purpose, outcome)))
        try:
            return await work(client)
        except (ModelDown, ModelRefused) as error:
            return error
        finally:
            await client.close()

    return asyncio.run(run()), outcomes


def test_call_while_the_server_loads_fails_and_later_calls_succeed(server):
    url, model, (early, _) = server
    assert isinstance(early, ModelDown)
    assert asking(url, model, lambda client: client.probe()) == (None, [("probe", "ok")])


def test_answer_without_json_is_refused_as_a_whole(server):
    url, model, _ = server

    def work(client):
        messages = entity_messages(PASSAGE)
        return client.ask("entities", messages, ENTITIES_SCHEMA, parse_entities, max_tokens=ANSWER_TOKENS)

    found, outcomes = asking(url, model, work)
    assert isinstance(found, ModelRefused)
    assert {outcome for _, outcome in outcomes} <= {"no JSON", "cut off", "wrong schema"}


def test_answer_arrives_in_growing_parts(server):
    url, model, _ = server

    async def work(client):
        messages = entity_messages(PASSAGE)
        return [r async for r in client.stream("answer", messages, ENTITIES_SCHEMA, max_tokens=ANSWER_TOKENS)]

    replies, outcomes = asking(url, model, work)
    assert all(after.text.startswith(before.text) for before, after in pairwise(replies))
    assert 0 < replies[-1].completion_tokens <= ANSWER_TOKENS
    assert outcomes == [("answer", "ok")]
