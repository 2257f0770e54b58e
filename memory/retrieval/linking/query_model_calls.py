"""A query's thread waits for the model, within a time limit, and notes what that cost."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from memory.llm.client import ChatMessage, Reply
from memory.llm.errors import BadAnswer, ModelError
from memory.llm.token_estimates import reply_tokens

Value = TypeVar("Value")


class QueryModelCalls:
    """One call of one query to the model, for one purpose: it runs on `loop`, the query waits in a thread of its own.

    Afterwards `note` says what came of trouble, if there was any; `calls`, `prompt_tokens` and `completion_tokens` say what the
    query cost (tokens of a failed call as far as the server counted them). `remembered_tokens` (prompt, completion) are those
    of an answer that an equal query had paid for. `before_wait` and `after_wait` are called around waiting for the model: the
    thread's share of the processor can serve other queries meanwhile.
    """

    what: str
    """Which part of the query waits for the model, as the note names it."""
    without: str
    """What the answer is without it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limit_s: float,
        before_wait: Callable[[], object],
        after_wait: Callable[[], object],
    ) -> None:
        self.note: str | None = None
        self.calls = self.prompt_tokens = self.completion_tokens = 0
        self.remembered_tokens: tuple[int, int] | None = None
        self._loop = loop
        self._limit_s = limit_s
        self._before_wait = before_wait
        self._after_wait = after_wait

    def wait(
        self, work: Coroutine[Any, Any, tuple[Value, Reply, bool]], messages: Callable[[], Sequence[ChatMessage]]
    ) -> Value | None:
        """What `work` returns beside the model's reply and whether that was remembered; None after trouble or too long."""
        answer = asyncio.run_coroutine_threadsafe(work, self._loop)
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
