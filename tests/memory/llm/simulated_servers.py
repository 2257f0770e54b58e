"""Model servers on a virtual clock, each drawn from a seed, and what a client that knows everything about one gets from it.

`ModelClient`, its retries and `Limiter` are the real ones. The network is not: `SimulatedServer` takes the place of `Chat`, so
that two minutes of calls take a tenth of a second, and a seed gives the same run on every machine.
"""

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from memory.llm.chat_completion import Chat, ChatMessage, ModelSettings, Reply
from memory.llm.client import ModelClient
from memory.llm.error_classification import TransientError
from memory.llm.errors import ModelDown
from memory.llm.limiter import Limiter
from memory.llm.rate_headers import RateLimit
from memory.llm.response_format import JsonSchema

SECONDS = 120.0
"""How long calls are made."""
TIMEOUT_S = 5.0
KINDS = ("token bucket", "concurrency limit", "shared quota", "slow start")
MAX_CALLS_PER_S = 20.0
"""No server answers more: a server's two minutes are to be simulated in tenths of a second."""
REFUSAL_S = 0.01
"""How long a server takes to refuse a call, or to fail."""
SHARE_CHANGES_S = 30.0
"""How often the others who share a quota change what they take of it."""

T = TypeVar("T")
Now = Callable[[], float]


class _VirtualClock(selectors.SelectSelector):
    """Does not wait: the clock leaps to the next timer."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "everything waits, and for nothing"
        self.now += max(timeout, 0.0)
        return []


def simulate(work: Callable[[Now], Coroutine[Any, Any, T]]) -> T:
    """Runs `work(now)` on a virtual clock; `now` tells its time in seconds."""
    clock = _VirtualClock()
    loop = asyncio.SelectorEventLoop(clock)
    loop.time = lambda: clock.now  # type: ignore[method-assign]
    try:
        return loop.run_until_complete(work(lambda: clock.now))
    finally:
        loop.close()


@dataclass(frozen=True, slots=True)
class Episode:
    """From `start` to `end` (seconds) every call meets `outcome`: "429", "500" or "timeout"."""

    start: float
    end: float
    outcome: str


@dataclass(frozen=True, slots=True)
class Situation:
    """One server and what happens to it."""

    kind: str
    most: int
    """Calls that the client may make at once."""
    latency_s: float
    rate: float
    """Calls a second that the server accepts, 0 where no rate is limited."""
    burst: float
    """Calls that may be saved up."""
    room: int
    """Calls at once that the server accepts."""
    busy: str
    """How a call beyond `room` is refused: "429" or "500"."""
    warm_after_s: float
    """Until then a server that starts slowly refuses every call (`ramp` False), or has room for a part of `room`."""
    ramp: bool
    others: tuple[float, ...]
    """The part of a shared quota that others take, for each `SHARE_CHANGES_S`."""
    hint: str
    """What a refusal says: "nothing", "Retry-After" in whole seconds, or "x-ratelimit" with every answer too."""
    first_outcomes: tuple[str, ...]
    """What the very first calls meet."""
    episodes: tuple[Episode, ...]
    fault_share: float
    """The part of all other calls that meets one of the three outcomes at random."""


def draw(seed: int) -> Situation:
    """The situation of a seed."""
    dice = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    most, room = dice.choice((8, 16, 32, 64)), 1 << 30
    latency_s, rate, burst = _log_uniform(dice, 0.05, 2.0), 0.0, float("inf")
    if kind in ("token bucket", "shared quota"):
        rate = _log_uniform(dice, 1.0, 20.0)
        burst = max(1.0, rate * dice.choice((0.1, 1.0, 10.0) if kind == "token bucket" else (1.0, 10.0)))
    else:
        room = dice.randint(2, 48)
        latency_s = max(latency_s, min(room, most) / MAX_CALLS_PER_S)
    starts = [dice.uniform(0.0, 1.0), *(dice.uniform(0.0, SECONDS) for _ in range(dice.randint(0, 3)))]
    return Situation(
        kind,
        most,
        latency_s,
        rate,
        burst,
        room,
        dice.choice(("429", "500")),
        dice.uniform(2.0, 15.0) if kind == "slow start" else 0.0,
        dice.random() < 0.5,
        tuple(dice.uniform(0.0, 0.7) for _ in range(int(SECONDS / SHARE_CHANGES_S) + 2)),
        dice.choice(("nothing", "Retry-After", "x-ratelimit")),
        tuple(dice.choice(("429", "500", "timeout")) for _ in range(dice.randint(0, 3))),
        tuple(
            Episode(start, start + dice.uniform(0.1, 2.0), dice.choice(("429", "500", "timeout"))) for start in starts
        ),
        dice.choice((0.0, 0.002, 0.01)),
    )


def _log_uniform(dice: random.Random, low: float, high: float) -> float:
    return float(low * (high / low) ** dice.random())


class SimulatedServer(Chat):
    """Answers calls as the situation says."""

    def __init__(self, situation: Situation, now: Now, seed: int) -> None:
        self._situation = situation
        self._now = now
        self._dice = random.Random(seed)
        self._tokens = situation.burst
        self._refilled_at = 0.0
        self._calls = self.inside = 0
        self.accepted = self.refused = self.failed = 0
        self._freed = asyncio.Event()

    async def close(self) -> None:
        pass

    async def complete(
        self, messages: Sequence[ChatMessage], schema: JsonSchema | None, json_mode: str, max_tokens: int
    ) -> Reply:
        situation = self._situation
        outcome = self._fault()
        if outcome is None and self.wait_s() > 0:
            outcome = "429" if self._tokens < 1 else situation.busy
        if outcome == "timeout":
            self.failed += 1
            await asyncio.sleep(TIMEOUT_S)
            raise TransientError("timeout", "no answer")
        if outcome is not None:
            self.refused += outcome == "429"
            self.failed += outcome == "500"
            await asyncio.sleep(REFUSAL_S)
            raise TransientError("429" if outcome == "429" else "5xx", outcome, self._retry_after_s(outcome))
        self._tokens -= 1
        self.inside += 1
        try:
            # A tenth of a call's time is the same for all; the rest is spread as for prompts of any length.
            await asyncio.sleep(situation.latency_s * (0.5 + self._dice.random()))
        finally:
            self.inside -= 1
            self._freed.set()
        self.accepted += 1
        return Reply('{"triples": []}', rate_limit=self._rate_limit())

    def wait_s(self) -> float:
        """Seconds until a call is accepted: 0 for one that comes now, infinity where one has to end first."""
        situation, at = self._situation, self._now()
        if wait := max((e.end - at for e in situation.episodes if e.start <= at < e.end), default=0.0):
            return wait
        self._refill(at)
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate(at) + 1e-9
        room = situation.room
        if at < situation.warm_after_s:
            if not situation.ramp:
                return situation.warm_after_s - at
            room = max(1, int(room * at / situation.warm_after_s))
        return 0.0 if self.inside < room else float("inf")

    async def freed(self) -> None:
        """Returns once a call has ended."""
        self._freed.clear()
        await self._freed.wait()

    def _rate(self, at: float) -> float:
        situation = self._situation
        if situation.kind != "shared quota":
            return situation.rate
        return situation.rate * (1 - situation.others[int(at / SHARE_CHANGES_S)])

    def _refill(self, at: float) -> None:
        gained = self._rate(at) * (at - self._refilled_at)
        self._tokens, self._refilled_at = min(self._situation.burst, self._tokens + gained), at

    def _fault(self) -> str | None:
        situation, at = self._situation, self._now()
        self._calls += 1
        if self._calls <= len(situation.first_outcomes):
            return situation.first_outcomes[self._calls - 1]
        for episode in situation.episodes:
            if episode.start <= at < episode.end:
                return episode.outcome
        if self._dice.random() < situation.fault_share:
            return self._dice.choice(("429", "500", "timeout"))
        return None

    def _retry_after_s(self, outcome: str) -> float | None:
        hint = self._situation.hint
        if outcome != "429" or hint == "nothing":
            return None
        wait = self.wait_s() if self.wait_s() < SECONDS else 1.0
        return float(max(1, -int(-wait // 1))) if hint == "Retry-After" else wait

    def _rate_limit(self) -> RateLimit | None:
        """As OpenAI words it: the calls that are left, and when all that may be saved up is there again."""
        situation, at = self._situation, self._now()
        if situation.hint != "x-ratelimit" or situation.rate == 0:
            return None
        self._refill(at)
        return RateLimit(int(self._tokens), (situation.burst - self._tokens) / self._rate(at))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Calls that were answered, refused with 429, and failed otherwise, and what the all-knowing client was answered."""

    answered: int
    refused: int
    failed: int
    possible: int

    @property
    def share(self) -> float:
        return self.answered / self.possible


def run(seed: int) -> Outcome:
    """What hippod's client gets from the seed's server, and what one that knows everything gets."""
    situation = draw(seed)
    random.seed(seed)  # the jitter of `ModelCallRetries`
    return simulate(
        lambda now: _by_model_client(situation, now, seed, simulate(lambda n: _possible(situation, n, seed)))
    )


async def _possible(situation: Situation, now: Now, seed: int) -> int:
    """Calls that a client is answered that begins each one when, and only when, the server takes it."""
    server = SimulatedServer(situation, now, seed)

    async def worker() -> None:
        while now() < SECONDS:
            if wait := server.wait_s():
                await (server.freed() if wait == float("inf") else asyncio.sleep(wait))
                continue
            try:
                await server.complete([], None, "", 0)
            except TransientError as error:
                await asyncio.sleep(error.retry_after_s or 0.0)

    tasks = [asyncio.ensure_future(worker()) for _ in range(situation.most)]
    await asyncio.sleep(SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return server.accepted


async def _by_model_client(situation: Situation, now: Now, seed: int, possible: int) -> Outcome:
    server = SimulatedServer(situation, now, seed)
    client = ModelClient(ModelSettings("http://simulated", "m", timeout_s=TIMEOUT_S), chat=server)
    limiter = Limiter(situation.most, now)

    async def worker() -> None:
        while now() < SECONDS:
            try:
                await client.ask("triples", [], JsonSchema("triples", {}), lambda value: value, limiter)
            except ModelDown:
                await asyncio.sleep(1.0)

    tasks = [asyncio.ensure_future(worker()) for _ in range(situation.most + situation.most // 4)]
    await asyncio.sleep(SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return Outcome(server.accepted, server.refused, server.failed, possible)
