"""A server that nobody runs, and one that points elsewhere: nothing of a passage goes where it should not."""

import asyncio

import pytest

from memory.llm.client import ModelClient, ModelSettings
from memory.llm.errors import ModelDown
from memory.openie.llm.prompts import ENTITIES_SCHEMA, entity_messages
from store.types import PassageText
from tests.memory.llm.model_server import ModelServer, Status, obedient

PASSAGE = PassageText("k", "Skellan Light", "Ada Kerr built it.")


def _failure(server: ModelServer) -> ModelDown:
    async def ask() -> ModelDown:
        client = ModelClient(ModelSettings(server.url, "m", max_retries=0))
        try:
            with pytest.raises(ModelDown) as failed:
                await client.ask("entities", entity_messages(PASSAGE), ENTITIES_SCHEMA, lambda found: found)
            return failed.value
        finally:
            await client.close()

    return asyncio.run(ask())


def test_refused_connection_marks_the_server_unavailable_in_the_log(serve):
    server = serve(obedient)
    server.stop()
    failure = _failure(server)
    assert failure.unavailable
    assert "cannot be reached" in failure.loggable and "connect" in failure.loggable.lower()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirect_is_reported_and_not_followed(serve, status):
    other = serve(obedient)
    server = serve(lambda call: Status(status, headers={"Location": f"{other.url}/chat/completions"}))
    failure = _failure(server)
    assert other.calls == []
    assert f"({status})" in str(failure) and other.url in str(failure) and "base_url" in str(failure)
    assert other.url not in failure.loggable
