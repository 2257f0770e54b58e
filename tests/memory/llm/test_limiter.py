"""How the limiter finds out what a server takes, on a clock that the test turns: nothing here depends on the machine."""

import asyncio
from collections import deque

import pytest

from memory.llm.limiter import Limiter
from memory.llm.rate_headers import RateLimit
from tests.memory.llm.simulated_servers import KINDS, draw, run, simulate


async def carry(calls, most, now, server):
    """`calls` calls through a limiter by as many workers as it may need: how long, how many were refused, the limiter."""
    limiter = Limiter(most, now)
    left, refused = calls, 0

    async def worker():
        nonlocal left, refused
        while left > 0:
            left -= 1
            while True:
                async with limiter.slot() as call:
                    retry_after = await server(now)
                    if retry_after is None:
                        limiter.succeeded()
                        break
                    limiter.refused(call, retry_after)
                refused += 1
                await asyncio.sleep(retry_after)

    began = now()
    await asyncio.gather(*(worker() for _ in range(most + most // 4)))
    return now() - began, refused, limiter


@pytest.mark.parametrize("calls", [2560, 10_000])
def test_concurrent_server_is_used_to_nine_tenths_of_its_capacity(calls):
    inside = 0

    async def server(_now):
        nonlocal inside
        inside += 1
        assert inside <= 64
        await asyncio.sleep(0.5)
        inside -= 1
        return

    took, refused, _ = simulate(lambda now: carry(calls, 64, now, server))
    assert refused == 0
    assert calls / took >= 0.9 * 128


class Window:
    """Ten calls in any second."""

    def __init__(self, latency_s):
        self.taken: deque[float] = deque()
        self.latency_s = latency_s

    async def __call__(self, now):
        at = now()
        while self.taken and self.taken[0] <= at - 1.0:
            self.taken.popleft()
        if len(self.taken) >= 10:
            await asyncio.sleep(min(self.latency_s, 0.01))
            return 1.0
        self.taken.append(at)
        await asyncio.sleep(self.latency_s)
        return None


class Bucket:
    """Ten calls a second on average, ten saved up at most."""

    def __init__(self, latency_s):
        self.tokens, self.at, self.latency_s = 10.0, 0.0, latency_s

    async def __call__(self, now):
        self.tokens, self.at = min(10.0, self.tokens + 10 * (now() - self.at)), now()
        if self.tokens < 1:
            await asyncio.sleep(min(self.latency_s, 0.01))
            return 1.0
        self.tokens -= 1
        await asyncio.sleep(self.latency_s)
        return None


class FixedWindow(Window):
    """Ten calls in each second of the clock."""

    async def __call__(self, now):
        second = int(now())
        if self.taken and self.taken[-1] != second:
            self.taken.clear()
        if len(self.taken) >= 10:
            await asyncio.sleep(min(self.latency_s, 0.01))
            return 1.0
        self.taken.append(second)
        await asyncio.sleep(self.latency_s)
        return None


@pytest.mark.parametrize("most", [8, 64])
@pytest.mark.parametrize("latency_s", [0.02, 0.5, 2.0])
@pytest.mark.parametrize("kind", [Window, Bucket, FixedWindow])
def test_rate_limited_server_is_used_to_nine_tenths_with_few_refusals(kind, latency_s, most):
    if most / latency_s < 10:
        pytest.skip("so few calls at once cannot reach ten a second")
    took, refused, limiter = simulate(lambda now: carry(600, most, now, kind(latency_s)))
    took -= latency_s  # the last call's answer
    assert 600 / took >= 0.9 * 10, (took, refused, limiter.rate)
    assert refused <= 0.05 * 600, (took, refused, limiter.rate)


def test_limiter_speeds_up_after_a_rate_limit_is_lifted():
    slow = Window(0.05)

    async def server(now):
        if now() < 60:
            return await slow(now)
        await asyncio.sleep(0.05)
        return None

    took, _, limiter = simulate(lambda now: carry(6000, 16, now, server))
    assert limiter.rate is None or limiter.rate > 40
    assert took < 6000 / 10 / 2


def test_failures_halve_concurrent_calls_and_successes_restore_them():
    """Failures in a row let one call at a time ask whether the server is back."""

    async def work(now):
        limiter = Limiter(32, now)
        for _ in range(100):
            async with limiter.slot() as call:
                limiter.succeeded()
        for _ in range(4):
            async with limiter.slot() as call:
                limiter.failed(call)
        async with limiter.slot() as call:
            holding = [limiter.slot() for _ in range(16)]
            second = asyncio.ensure_future(holding[0].__aenter__())
            await asyncio.sleep(1)
            assert not second.done()
            limiter.succeeded()
        calls = [await second] + [await each.__aenter__() for each in holding[1:]]
        seventeenth = asyncio.ensure_future(limiter.slot().__aenter__())
        await asyncio.sleep(1)
        assert not seventeenth.done()
        for _ in calls:
            limiter.succeeded()
        await holding[0].__aexit__(None, None, None)
        await seventeenth
        return limiter.inside

    assert simulate(work) == 16


def test_long_idle_time_after_a_refusal_does_not_slow_the_limiter():
    async def work(now):
        limiter = Limiter(16, now)
        async with limiter.slot() as call:
            limiter.succeeded()
        async with limiter.slot() as call:
            limiter.refused(call, 1.0)
        async with limiter.slot() as call:
            assert limiter.rate is not None
        for _ in range(5):
            await asyncio.sleep(86_400)
            for _ in range(40):
                async with limiter.slot() as call:
                    limiter.succeeded()
        return now()

    assert simulate(work) < 6 * 86_400


def test_server_is_used_in_full_seconds_after_a_refusal_and_a_failure():
    """No call had been accepted before the refusal: a rate that is estimated from nothing would be next to none."""
    outcomes = iter(["429", "500"])

    async def work(now):
        limiter = Limiter(16, now)
        left = 240

        async def worker():
            nonlocal left
            while left > 0:
                left -= 1
                answered = False
                while not answered:
                    async with limiter.slot() as call:
                        outcome = next(outcomes, "ok")
                        await asyncio.sleep(0.01)
                        answered = outcome == "ok"
                        if answered:
                            limiter.succeeded()
                        elif outcome == "429":
                            limiter.refused(call, 1.0)
                        else:
                            limiter.failed(call)
                    await asyncio.sleep(0 if answered else 1.0)

        first = asyncio.ensure_future(worker())
        await asyncio.sleep(0.1)  # its call is refused before another one began
        await asyncio.gather(first, *(worker() for _ in range(19)))
        return now()

    assert simulate(work) < 15


def test_refusals_without_any_success_set_no_rate():
    async def work(now):
        limiter = Limiter(16, now)
        for _ in range(20):
            async with limiter.slot() as call:
                limiter.refused(call, 1.0)
        assert limiter.rate is None
        began = now()
        for _ in range(20):
            async with limiter.slot() as call:
                limiter.succeeded()
        return now() - began

    assert simulate(work) == 1.0  # the last refusal's time, and nothing more


def test_no_call_begins_before_a_long_retry_after_is_over():
    async def work(now):
        limiter = Limiter(16, now)
        for wait in (5.0, 30.0):
            async with limiter.slot() as call:
                limiter.succeeded()
            async with limiter.slot() as call:
                limiter.refused(call, wait)
            refused_at = now()
            async with limiter.slot() as call:
                assert call.began == refused_at + wait
                limiter.succeeded()

    simulate(work)


def test_remaining_calls_in_headers_are_spread_over_the_reset_time():
    async def work(now):
        limiter = Limiter(16, now)
        async with limiter.slot() as call:
            limiter.succeeded(RateLimit(remaining=10, reset_s=5.0))
        begins = []
        for _ in range(10):
            async with limiter.slot() as call:
                begins.append(now())
        assert begins[-1] - begins[1] == pytest.approx(8 * 0.5)
        async with limiter.slot() as call:
            limiter.succeeded(RateLimit(remaining=0, reset_s=20.0))
        at = now()
        async with limiter.slot() as call:
            return call.began - at

    assert simulate(work) == pytest.approx(20.0)


@pytest.mark.parametrize("seed", range(8))
def test_random_server_is_used_to_seven_tenths_of_the_optimum(seed):
    """`python -m bench models` draws 200."""
    assert draw(seed).kind == KINDS[seed % len(KINDS)]
    outcome = run(seed)
    assert outcome.share >= 0.7, (draw(seed), outcome)
