"""Commits leave time for queries: while a query runs, there is a rest between two commits."""

import contextlib
import threading
import time
from typing import Any

import httpx2
import pytest

from daemon.pipeline.commit.committer import COMMIT_PAUSE_S
from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import until
from tests.memory.llm.model_server import Call, Hang, ModelServer

pytestmark = [pytest.mark.daemon, pytest.mark.model_server]

DOCUMENTS = 20
ASKED = "Who holds the lamp?"


def embeddings(call: Call) -> Any:
    """The question's vector never arrives; those of passages and phrases arrive at once."""
    texts = call.body["input"]
    if any(ASKED in text for text in texts):
        return Hang()
    vectors = [{"index": n, "embedding": [1.0, len(text) % 7, 0.5]} for n, text in enumerate(texts)]
    return {"object": "list", "model": "m", "data": vectors, "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def test_commits_pause_while_a_query_runs(hippo: Hippo) -> None:
    with ModelServer(embeddings) as server:
        encoder = {"backend": "openai", "model": "m", "base_url": server.url}
        daemon = hippo(encoder=encoder, daemon={"stop_timeout_s": 2.0}).start()
        daemon.add({"id": "first", "text": "The lamp of the hall is lit."})
        daemon.wait()

        def ask() -> None:
            with contextlib.suppress(AssertionError, httpx2.HTTPError):
                daemon.query(ASKED)

        threading.Thread(target=ask, daemon=True).start()
        until(lambda: server.inside, "the query is at work")
        before, began = daemon.metric("hippod_commits_total"), time.monotonic()
        for number in range(DOCUMENTS):
            daemon.add({"id": f"d{number}", "text": f"The lamp of shelf {number} is lit."})
            daemon.wait()  # otherwise a batch may be long and be interrupted without a rest
        commits = daemon.metric("hippod_commits_total") - before
        # On any machine: the first commit is immediate, every other one follows a rest.
        assert DOCUMENTS <= commits <= 1 + (time.monotonic() - began) / COMMIT_PAUSE_S
