"""What is told of memory: what cannot be dropped, bytes a passage, and when it will be full."""

from collections.abc import Sequence
from pathlib import Path

from daemon.contract.status import MemoryUse
from daemon.observe.resource_use import MemoryForecast, anonymous_bytes

MIB = 1 << 20


def test_anonymous_bytes_adds_rss_anon_and_swap(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("VmRSS:\t  900 kB\nRssAnon:\t  300 kB\nRssFile:\t  600 kB\nVmSwap:\t   50 kB\n")
    assert anonymous_bytes(status) == 350 << 10
    assert anonymous_bytes() > MIB
    assert anonymous_bytes(tmp_path / "nowhere") == 0


def grow(forecast: MemoryForecast, passages: int, each: int, noise: Sequence[int] = (0,)) -> MemoryUse:
    """The forecast after so many passages, which came 25 a second and took `each` bytes."""
    use = MemoryUse(used_bytes=0)
    for count in range(0, passages + 1, 250):
        extra = noise[count // 250 % len(noise)]
        use = forecast.use(100 * MIB + count * each + extra, 400 * MIB, count, now=count / 25)
    return use


def test_growing_memory_forecasts_remaining_passages_and_time() -> None:
    forecast = MemoryForecast()
    use = grow(forecast, 5_000, 10_000)
    assert use.bytes_per_passage == 10_000
    assert use.room_passages == (300 * MIB - 5_000 * 10_000) // 10_000
    assert use.full_in_s == use.room_passages / 25


def test_memory_without_recent_growth_has_no_time_until_full() -> None:
    forecast = MemoryForecast()
    used = grow(forecast, 5_000, 10_000).used_bytes
    idle = [forecast.use(used, 400 * MIB, 5_000, now=200 + second) for second in range(0, 120, 10)]
    assert idle[-1].full_in_s is None, "no passage came for a minute, though many came in the last ten minutes"
    assert idle[-1].room_passages is not None


def test_memory_not_correlated_with_passages_has_no_forecast() -> None:
    assert grow(MemoryForecast(), 5_000, 1_000, noise=(0, 90 * MIB, 20 * MIB)).bytes_per_passage is None
    # A store that was opened with many passages, and idles: what it holds says nothing about the next passage.
    forecast = MemoryForecast()
    opened = [forecast.use(300 * MIB, 400 * MIB, 8_000, now=10.0 * at) for at in range(100)]
    assert (opened[-1].bytes_per_passage, opened[-1].room_passages, opened[-1].full_in_s) == (None, None, None)


def test_a_memory_without_a_limit_or_one_that_shrank_has_no_forecast() -> None:
    forecast = MemoryForecast()
    grow(forecast, 5_000, 10_000)
    unbounded = forecast.use(150 * MIB, None, 5_000, now=201.0)
    assert (unbounded.bytes_per_passage, unbounded.room_passages) == (10_000, None)
    assert forecast.use(150 * MIB, 400 * MIB, 2_000, now=202.0).bytes_per_passage is None
