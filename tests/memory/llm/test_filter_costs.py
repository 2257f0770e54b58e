"""What recognition memory costs a question, also where the server does not count."""

import asyncio
import threading

import pytest

from memory.llm.client import Reply
from memory.retrieval.linking.query_model_calls import ModelFilter, QueryFilter, recognition_prompt
from store.types import Triple

TRIPLES = (("corl tower", "sold to", "brandel family"),)


class Replying(ModelFilter):
    """Answers with one reply."""

    def __init__(self, loop: asyncio.AbstractEventLoop, reply: Reply, remembered: bool = False) -> None:
        self.loop, self._reply, self._remembered = loop, reply, remembered

    async def keep(
        self, query: str, triples: tuple[Triple, ...], within: str = ""
    ) -> tuple[tuple[int, ...], Reply, bool]:
        return (0,), self._reply, self._remembered


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


def test_filter_tokens_are_those_reported_or_a_third_of_the_characters(loop) -> None:
    answer = '{"relevant": [["corl tower", "sold to", "brandel family"]]}'
    assert spent(loop, Reply(answer, prompt_tokens=700, completion_tokens=20)) == (700, 20)
    sent = sum(len(message["content"]) for message in recognition_prompt("Who bought Corl Tower?", TRIPLES))
    assert spent(loop, Reply(answer)) == (sent // 3, len(answer) // 3)


def test_cached_filter_answer_costs_nothing_and_reports_its_original_cost(loop) -> None:
    reply = Reply('{"relevant": []}', prompt_tokens=700, completion_tokens=20)
    attempt = QueryFilter(Replying(loop, reply, remembered=True), 60.0, lambda: None, lambda: None)
    assert attempt.keep("Who bought Corl Tower?", TRIPLES) == (0,)
    assert (attempt.calls, attempt.prompt_tokens, attempt.completion_tokens) == (0, 0, 0)
    assert attempt.remembered_tokens == (700, 20)
