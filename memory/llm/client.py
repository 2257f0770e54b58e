"""Asking a model: OpenAI's own client for the protocol; what to try again, how soon, and when to give up is decided here."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from memory.llm.answers import parse
from memory.llm.errors import BadAnswer, ModelDown, ModelError, ModelRefused
from memory.llm.formats import Known, Shape, below, is_too_long
from memory.llm.lengths import Lengths
from memory.llm.limiter import Limiter

if TYPE_CHECKING:  # half a second of imports, which only those with a model have to wait for
    import openai

BAD_ANSWERS = 2
"""How often an answer of no use is asked for again: a model at temperature 0 seldom thinks better of it."""
REFUSALS = 30
"""How often in a row a call may be put off by 429 before that counts as an outage."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
MAX_TOKENS = 4096
CONFIGURATION = {
    401: "the key is missing or refused",
    403: "the key may not do this",
    404: "no such address or model",
    405: "no such address",
}
"""What a server means by these, whatever else it says."""
MALFORMED = (ValueError, TypeError, AttributeError, LookupError)
"""What the client, or reading its answer, raises for a body that is no answer in the protocol."""
INLINE_CHARS = 2048
"""A longer answer is read in a thread: repairing it may take a second."""

Message = dict[str, str]
Told = Callable[[str, str], None]
"""Is told of every call its purpose and its outcome, both fixed words.

Purposes: "entities", "triples", "filter", "judge", "evolve", "merge", "answer", "probe".
"""
Used = Callable[[str, int, int], None]
"""Is told of every answer its purpose and its prompt and completion tokens, of no use though it may be."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """`[llm]`. `key` is the secret itself."""

    base_url: str
    model: str
    key: str | None = None
    timeout_s: float = 60.0
    max_retries: int = 5
    temperature: float = 0.0

    def __repr__(self) -> str:
        return f"ModelSettings({self.base_url!r}, {self.model!r})"


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer. `cut`: it ran into its length limit. Tokens are as the server counts them, 0 where it does not."""

    text: str
    cut: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Trouble(ModelError):
    """One try failed in a way that another may not. `outcome` is for counting."""

    def __init__(
        self, outcome: str, message: str, retry_after_s: float | None = None, unquoted: str | None = None
    ) -> None:
        super().__init__(message, unquoted)
        self.outcome = outcome
        self.retry_after_s = retry_after_s


class ModelClient:
    """One server and model. On one event loop."""

    def __init__(
        self,
        settings: ModelSettings,
        told: Told = lambda _purpose, _outcome: None,
        used: Used = lambda _purpose, _prompt, _completion: None,
    ) -> None:
        import openai

        self.settings = settings
        self.told = told
        self._used = used
        self._known = Known()
        self._lengths = Lengths()
        self._openai = openai.AsyncOpenAI(
            base_url=settings.base_url, api_key=settings.key or "none", timeout=settings.timeout_s, max_retries=0
        )

    async def close(self) -> None:
        await self._openai.close()

    async def ask(
        self,
        purpose: str,
        messages: Sequence[Message],
        shape: Shape,
        read: Callable[[Any], T],
        limiter: Limiter | None = None,
        retries: int | None = None,
        max_tokens: int = MAX_TOKENS,
        before: Callable[[], None] = lambda: None,
    ) -> tuple[T, Reply]:
        """What `read` makes of the JSON answer, and the answer itself with the tokens of every try that was answered.

        `read` raises BadAnswer for JSON of no use. `retries` is how often trouble is tried again, `[llm] max_retries` by
        default. `before` is called before every try but those that follow a 429, and may raise to make it the end. Raises
        ModelDown, ModelRefused or BadAnswer, with the tokens of what was answered and of no use.
        """
        tries, refusals, bad = 0, 0, 0
        taken = True
        retries = self.settings.max_retries if retries is None else retries
        spent = Reply("")
        while True:
            if taken:
                before()
            taken = True
            try:
                reply = await self._limited(purpose, messages, shape, limiter, max_tokens, tries)
                self._used(purpose, reply.prompt_tokens, reply.completion_tokens)
                spent = replace(
                    reply,
                    prompt_tokens=spent.prompt_tokens + reply.prompt_tokens,
                    completion_tokens=spent.completion_tokens + reply.completion_tokens,
                )
                short = len(reply.text) <= INLINE_CHARS
                parsed = parse(reply.text) if short else await asyncio.to_thread(parse, reply.text)
                value = read(parsed.value)
                self.told(purpose, "cut off" if reply.cut else parsed.how)
                return value, spent
            except BadAnswer as error:
                self.told(purpose, error.kind)
                bad += 1
                if reply.cut or bad > min(BAD_ANSWERS, retries):
                    # The caller may ask for less at a time.
                    raise _spent(ModelRefused(str(error), too_long=True) if reply.cut else error, spent) from None
            except _Trouble as trouble:
                self.told(purpose, trouble.outcome)
                limited = trouble.outcome == "429"
                taken = not limited
                refusals, tries = refusals + limited, tries + (not limited)
                if tries > retries or refusals > (REFUSALS if retries else 0):
                    raise _spent(ModelDown(str(trouble), trouble.unquoted), spent) from None
                await asyncio.sleep(_pause(max(tries, 1), trouble.retry_after_s))
            except ModelRefused as error:
                _spent(error, spent)
                raise

    async def probe(self) -> None:
        """Returns when the server answers a few tokens' worth of question; raises ModelDown when it does not."""
        try:
            await self._once([{"role": "user", "content": "Say OK."}], None, "words", 16)
        except (_Trouble, ModelRefused) as error:
            self.told("probe", error.outcome if isinstance(error, _Trouble) else "refused")
            raise ModelDown(str(error), error.unquoted) from None
        self.told("probe", "ok")

    async def stream(
        self, purpose: str, messages: Sequence[Message], shape: Shape, max_tokens: int = MAX_TOKENS
    ) -> AsyncGenerator[Reply, None]:
        """The answer as it is written: each Reply holds all of the text so far. One try. Raises ModelDown or ModelRefused."""
        rung: str | None = self._known.rung
        while rung is not None:
            began, reply = False, Reply("")
            try:
                async with aclosing(self._stream(messages, shape, rung, max_tokens)) as replies:
                    async for reply in replies:
                        began = True
                        yield reply
                self._known.worked(rung)
                self._used(purpose, reply.prompt_tokens, reply.completion_tokens)
                self.told(purpose, "ok")
                return
            except ModelRefused as error:
                lower = None if error.too_long or began else below(rung)
                if lower is None:
                    self.told(purpose, "refused")
                    raise
                rung = lower
            except _Trouble as trouble:
                self.told(purpose, trouble.outcome)
                raise ModelDown(str(trouble), trouble.unquoted) from None

    async def _limited(
        self,
        purpose: str,
        messages: Sequence[Message],
        shape: Shape,
        limiter: Limiter | None,
        max_tokens: int,
        tries: int,
    ) -> Reply:
        if limiter is None:
            return await self._down_the_rungs(purpose, messages, shape, max_tokens, tries)
        async with limiter.slot() as began:
            try:
                reply = await self._down_the_rungs(purpose, messages, shape, max_tokens, tries)
            except _Trouble as trouble:
                if trouble.outcome == "429":
                    limiter.refused(began, trouble.retry_after_s)
                else:
                    limiter.troubled()
                raise
            limiter.succeeded()
            return reply

    async def _down_the_rungs(
        self, purpose: str, messages: Sequence[Message], shape: Shape, max_tokens: int, tries: int
    ) -> Reply:
        rung: str | None = self._known.rung
        # Some servers fail (500) where they should refuse: a way of asking that never worked is doubted after two tries.
        if tries >= 2 and not self._known.proven:
            rung = below(self._known.rung) or rung
        while True:
            assert rung is not None
            try:
                reply = await self._once(messages, shape, rung, max_tokens)
            except ModelRefused as error:
                lower = None if error.too_long else below(rung)
                if lower is None:
                    self.told(purpose, "too long" if error.too_long else "refused")
                    raise
                rung = lower
                continue
            self._known.worked(rung)
            return reply

    async def _once(self, messages: Sequence[Message], shape: Shape | None, rung: str, max_tokens: int) -> Reply:
        import openai

        while True:
            asked = self._lengths.most(_chars(messages), max_tokens)
            options = self._known.options(shape, rung, self.settings.temperature, asked)
            spoken: Any = list(messages)
            try:
                async with asyncio.timeout(self.settings.timeout_s):
                    answer: Any = await self._openai.chat.completions.create(
                        model=self.settings.model,
                        messages=spoken,
                        **options,
                    )
                return _reply(answer)
            except (openai.OpenAIError, TimeoutError, *MALFORMED) as error:
                self._judge(error, partial(self._lengths.fewer, _chars(messages), max_tokens, asked))

    async def _stream(
        self, messages: Sequence[Message], shape: Shape, rung: str, max_tokens: int
    ) -> AsyncGenerator[Reply, None]:
        import openai

        while True:
            asked = self._lengths.most(_chars(messages), max_tokens)
            options = self._known.options(shape, rung, self.settings.temperature, asked)
            spoken: Any = list(messages)
            if "stream_options" not in self._known.dropped:
                options["stream_options"] = {"include_usage": True}
            try:
                pieces: Any = await self._openai.chat.completions.create(
                    model=self.settings.model,
                    messages=spoken,
                    stream=True,
                    **options,
                )
                break
            except (openai.OpenAIError, *MALFORMED) as error:
                self._judge(error, partial(self._lengths.fewer, _chars(messages), max_tokens, asked))
        reply, finished = Reply(""), False
        try:
            async with pieces:
                async for piece in pieces:
                    for choice in (piece.choices or [])[:1]:
                        finished = finished or choice.finish_reason is not None
                        more = getattr(choice.delta, "content", None) or ""
                        reply = replace(reply, text=reply.text + more, cut=choice.finish_reason == "length")
                    if piece.usage is not None:
                        reply = replace(
                            reply,
                            prompt_tokens=piece.usage.prompt_tokens or 0,
                            completion_tokens=piece.usage.completion_tokens or 0,
                        )
                    yield reply
        except Exception as error:
            # The client lets the transport's own errors through once a stream has begun.
            if isinstance(error, ModelError):
                raise
            why = type(error).__name__
            raise self._trouble("connection", "the connection broke", f": {error or why}", f" ({why})") from None
        if not finished:
            raise _Trouble("connection", self._said("the answer broke off"))

    def _judge(self, error: Exception, fewer: Callable[[], bool]) -> Literal[None]:
        """Returns when the same request is worth repeating at once, without an option that was refused; else raises.

        `fewer` is asked when it was too long: whether it is to be repeated with fewer tokens for the answer.
        """
        import openai

        if isinstance(error, openai.APITimeoutError | TimeoutError):
            raise self._trouble("timeout", f"no answer within {self.settings.timeout_s:g} s") from None
        said, kind = f" ({_cause(error)})", f" ({_kind(error)})"
        if isinstance(error, openai.APIConnectionError):
            raise self._trouble("connection", "cannot be reached", said, kind) from None
        if not isinstance(error, openai.APIStatusError):
            raise self._trouble("protocol", "did not answer in the protocol", said, kind) from None
        status, complaint = error.status_code, str(error)
        after = _retry_after(error)
        if status == 429:
            raise self._trouble("429", "takes no more calls (429)", f": {complaint}", after=after) from None
        if status in CONFIGURATION:
            what, hint = f"refuses the configuration ({status})", f": {CONFIGURATION[status]}"
            raise self._trouble(str(status), what, f": {complaint}", hint, after) from None
        if status in (400, 413, 422, 501):
            if status != 413 and (fewer() if is_too_long(complaint) else self._known.drop(complaint)):
                return None
            long = status == 413 or is_too_long(complaint)
            what = f"refuses the request ({status})"
            raise ModelRefused(self._said(f"{what}: {complaint}"), long, self._said(what)) from None
        outcome = "5xx" if status >= 500 else str(status)
        raise self._trouble(outcome, f"failed ({status})", f": {complaint}", after=after) from None

    def _trouble(
        self, outcome: str, what: str, said: str = "", instead: str = "", after: float | None = None
    ) -> _Trouble:
        """`said` is the server's own, and stands in the message alone; where nothing of it may be shown, `instead` does."""
        return _Trouble(outcome, self._said(what + said), after, self._said(what + instead))

    def _said(self, what: str) -> str:
        """One line without the key."""
        host = self.settings.base_url.split("://", 1)[-1].split("/", 1)[0].rsplit("@", 1)[-1]
        line = " ".join(f"the model server {host} {what}".split())
        if self.settings.key:
            line = line.replace(self.settings.key, "***")
        return line[:400]


def _spent(error: ModelError, reply: Reply) -> ModelError:
    """The error with what was paid before it came."""
    error.prompt_tokens, error.completion_tokens = reply.prompt_tokens, reply.completion_tokens
    return error


def _chars(messages: Sequence[Message]) -> int:
    return sum(len(message["content"]) for message in messages)


def _reply(answer: Any) -> Reply:
    """The parts of a completion that are used; a server may leave any of them out."""
    choices = getattr(answer, "choices", None)
    if not choices:
        raise _Trouble("protocol", "the model server's answer holds no message")
    message, usage = choices[0].message, getattr(answer, "usage", None)
    text = getattr(message, "content", None) or ""
    prompt, completion = (getattr(usage, name, 0) or 0 for name in ("prompt_tokens", "completion_tokens"))
    return Reply(str(text), choices[0].finish_reason == "length", int(prompt), int(completion))


def _cause(error: Exception) -> str:
    inner: BaseException = error.__cause__ or error
    return str(inner) or type(inner).__name__


def _kind(error: Exception) -> str:
    """The cause without what a server wrote: in full where no connection was made, since nobody had been asked anything."""
    import httpx

    inner: BaseException = error.__cause__ or error
    return (str(inner) if isinstance(inner, httpx.ConnectError) else "") or type(inner).__name__


def _retry_after(error: "openai.APIStatusError") -> float | None:
    """Seconds, from `Retry-After` (a number; a date is left to the backoff) or `retry-after-ms`."""
    headers = error.response.headers
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if 0 <= seconds <= 3600:
            return seconds
    return None


def _pause(tries: int, retry_after_s: float | None) -> float:
    """Exponential with full jitter (the second half of it), or what the server asked for and a little more."""
    if retry_after_s is not None:
        return retry_after_s * (1 + 0.1 * random.random())
    return min(FIRST_PAUSE_S * 2.0 ** (tries - 1), LONGEST_PAUSE_S) * (0.5 + 0.5 * random.random())
