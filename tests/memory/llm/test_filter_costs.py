"""What recognition memory costs a question, also where the server does not count."""

import asyncio
import threading

import pytest

from memory.llm.client import Reply
from memory.retrieval.linking.recognition_memory import QueryFilter, recognition_prompt

TRIPLES = (("corl tower", "sold to", "brandel family"),)


class Replying:
    """Stands for `ModelFilter`: answers with one reply."""

    def __init__(self, loop: asyncio.AbstractEventLoop, reply: Reply) -> None:
        self.loop, self._reply = loop, reply

    async def keep(self, _query: str, _triples: object, _within: str) -> tuple[tuple[int, ...], Reply]:
        return (0,), self._reply


@pytest.fixture
def loop():
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


def spent(loop, reply: Reply) -> tuple[int, int]:
    attempt = QueryFilter(Replying(loop, reply), 60.0, lambda: None, lambda: None)
    assert attempt.keep("Who bought Corl Tower?", TRIPLES) == (0,)
    return attempt.prompt_tokens, attempt.completion_tokens


def test_tokens_are_the_servers_or_else_one_for_three_characters(loop) -> None:
    answer = '{"relevant": [["corl tower", "sold to", "brandel family"]]}'
    assert spent(loop, Reply(answer, prompt_tokens=700, completion_tokens=20)) == (700, 20)
    sent = sum(len(message["content"]) for message in recognition_prompt("Who bought Corl Tower?", TRIPLES))
    assert spent(loop, Reply(answer)) == (sent // 3, len(answer) // 3)
