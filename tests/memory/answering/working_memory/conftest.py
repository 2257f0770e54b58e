"""Stores and questions for the tests of the working memory."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memory.answering.budget import Budget
from memory.answering.working_memory.deep import ask_deep
from memory.answering.working_memory.deep_answer import DeepAnswer
from memory.answering.working_memory.trace import DeepSettings
from memory.batch_encoding import with_vectors
from memory.llm.client import ModelClient, ModelSettings
from store.store import Store
from store.types import Batch, Document, PassageRef, PassageText, passage_id
from tests.memory.answering.working_memory.toy import ENCODER, PASSAGES, Told
from tests.memory.llm.model_server import ModelServer, Script, obedient


def keep(store: Store, passages: dict[str, Told], removed: tuple[str, ...] = ()) -> None:
    """Commits one document for each passage, named `toy:<title>`."""
    texts = {title: PassageText(passage_id(title, text), title, text) for title, (text, _) in passages.items()}
    documents = tuple(
        Document(f"toy:{title}", "test", passages=(PassageRef(texts[title].id, {}, tuple(triples)),))
        for title, (_, triples) in passages.items()
    )
    batch = Batch(documents, tuple(f"toy:{title}" for title in removed), tuple(texts.values()))
    store.commit(with_vectors(store, ENCODER, batch))


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The memory of `tests.memory.answering.working_memory.toy`. The tests of a module share this store and must not commit to
    it."""
    with Store(tmp_path_factory.mktemp("toy") / "store", ENCODER.identity) as store:
        keep(store, PASSAGES)
        yield store


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Store]:
    """The same memory for one test, which may change it."""
    with Store(tmp_path / "store", ENCODER.identity) as store:
        keep(store, PASSAGES)
        yield store


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(obedient) as server:
        yield server


@contextmanager
def client_of(server: ModelServer, **settings: Any) -> Iterator[ModelClient]:
    yield ModelClient(ModelSettings(server.url, "test-model", **{"timeout_s": 30.0, "max_retries": 3} | settings))


QUICK = DeepSettings(quick=True, steps=2, passages=5, budget=Budget())
"""Allows three retrievals and nine calls."""

Ask = Callable[..., DeepAnswer]


@pytest.fixture
def ask(toy: Store, model: ModelServer) -> Iterator[Ask]:
    """`ask(question, script)`: asks a deep question of the toy memory; the script answers."""

    def run(question: str, script: Script, settings: DeepSettings | None = None, **more: Any) -> DeepAnswer:
        model.script = script
        model.calls.clear()
        llm = more.pop("llm", {})

        async def deep() -> DeepAnswer:
            with client_of(model, **llm) as client:
                try:
                    return await ask_deep(
                        question,
                        more.pop("snapshot", None) or toy.snapshot(),
                        ENCODER,
                        client,
                        settings or QUICK,
                        **more,
                    )
                finally:
                    await client.close()

        return asyncio.run(deep())

    yield run
    model.script = obedient
