"""Caches a model's answers about queries, and lets a query's thread wait for the model with a time limit."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from typing import Any, Generic, TypeVar

from memory.llm.client import ChatMessage, ModelClient, Reply
from memory.llm.errors import BadAnswer, ModelError
from memory.llm.token_estimates import reply_tokens

CACHED_ANSWERS = 1024

Value = TypeVar("Value")


class QueryModel(Generic[Value]):
    """One model that answers questions about queries on `loop`. Keeps its last `CACHED_ANSWERS` answers, with their replies."""

    def __init__(self, client: ModelClient, loop: asyncio.AbstractEventLoop) -> None:
        self.client = client
        self.loop = loop
        self._cache: OrderedDict[Hashable, tuple[Value, Reply]] = OrderedDict()

    async def cached(
        self, key: Hashable, ask: Callable[[], Awaitable[tuple[Value, Reply]]]
    ) -> tuple[Value, Reply, bool]:
        """Returns the answer to the question `key`, the model's reply, and whether they are cached. `ask` asks the model."""
        is_cached = key in self._cache
        value, reply = self._cache[key] if is_cached else await ask()
        self._cache[key] = value, reply
        self._cache.move_to_end(key)
        if len(self._cache) > CACHED_ANSWERS:
            self._cache.popitem(last=False)
        return value, reply, is_cached


ModelT = TypeVar("ModelT", bound=QueryModel[Any])


class QueryModelCalls(Generic[ModelT]):
    """One call of `model` for one query. It runs on the model's loop, while the query waits in its own thread.

    `within` is the scope of the query: answers are cached per scope.

    Afterwards, `note` describes a failure, if there was one. `calls`, `prompt_tokens` and `completion_tokens` are the cost of
    the query, with the tokens of a failed call if the server counted them. `remembered_tokens` (prompt, completion) are the
    tokens of a cached answer, which an earlier equal query paid for. `before_wait` and `after_wait` are called around the wait,
    so that other queries can use this thread's share of the processor.
    """

    what: str
    """The part of the query that waits for the model, as the note names it."""
    without: str
    """What the answer is without this call, as the note says it."""

    def __init__(
        self,
        model: ModelT,
        limit_s: float,
        before_wait: Callable[[], object],
        after_wait: Callable[[], object],
        within: str = "",
    ) -> None:
        self.note: str | None = None
        self.calls = self.prompt_tokens = self.completion_tokens = 0
        self.remembered_tokens: tuple[int, int] | None = None
        self._model = model
        self._within = within
        self._limit_s = limit_s
        self._before_wait = before_wait
        self._after_wait = after_wait

    def wait(
        self, work: Coroutine[Any, Any, tuple[Value, Reply, bool]], messages: Callable[[], Sequence[ChatMessage]]
    ) -> Value | None:
        """Waits for `work` and returns its value; None after an error or a timeout.

        `work` returns the value, the model's reply, and whether the reply was cached. `messages` returns the prompt, whose
        tokens are counted.
        """
        answer = asyncio.run_coroutine_threadsafe(work, self._model.loop)
        self._before_wait()
        self.calls = 1
        try:
            value, reply, remembered = answer.result(self._limit_s)
            tokens = reply_tokens(messages(), reply)
            if remembered:
                self.calls, self.remembered_tokens = 0, tokens
            else:
                self.prompt_tokens, self.completion_tokens = tokens
            return value
        except TimeoutError:
            answer.cancel()
            self.note = f"{self.without}: {self.what} took longer than {self._limit_s:g} s"
        except ModelError as error:
            self.prompt_tokens, self.completion_tokens = error.prompt_tokens, error.completion_tokens
            self.note = f"{self.without}: {error}"
        finally:
            self._after_wait()
        return None


def cut_off(reply: Reply) -> BadAnswer:
    """The failure of a call whose answer reached its length limit before it said anything of use."""
    error = BadAnswer("cut off", "the model's answer was cut off at its length limit")
    error.prompt_tokens, error.completion_tokens = reply.prompt_tokens, reply.completion_tokens
    return error
