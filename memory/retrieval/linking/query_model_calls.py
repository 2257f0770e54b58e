"""A query's thread waits for the model, within a time limit, and notes what that cost."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from memory.llm.client import ChatMessage, Reply
from memory.llm.errors import ModelError
from memory.llm.token_estimates import reply_tokens

Value = TypeVar("Value")


class QueryModelCalls:
    """What one query asks the model for one purpose, `what`: its calls run on `loop`, the query waits in a thread of its own.

    Afterwards `note` says what came of trouble, if there was any; `calls`, `prompt_tokens` and `completion_tokens` say what
    the query cost (the tokens of a failed call are not known). `before_wait` and `after_wait` are called around waiting
    for the model: the thread's share of the processor can serve other queries meanwhile.
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
        self._loop = loop
        self._limit_s = limit_s
        self._before_wait = before_wait
        self._after_wait = after_wait

    def wait(
        self, work: Coroutine[Any, Any, tuple[Value, Reply | None]], messages: Callable[[], Sequence[ChatMessage]]
    ) -> Value | None:
        """What `work` returns (its reply None where the model was not asked); None after trouble or too long a time."""
        answer = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._before_wait()
        self.calls += 1
        try:
            value, reply = answer.result(self._limit_s)
            if reply is None:
                self.calls -= 1
            else:
                prompt, completion = reply_tokens(messages(), reply)
                self.prompt_tokens += prompt
                self.completion_tokens += completion
            return value
        except TimeoutError:
            answer.cancel()
            self.note = f"{self.without}: {self.what} took longer than {self._limit_s:g} s"
        except ModelError as error:
            self.note = f"{self.without}: {error}"
        finally:
            self._after_wait()
        return None
