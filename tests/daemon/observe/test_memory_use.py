"""What is told of memory: what cannot be dropped, bytes a passage, and when it will be full."""

from pathlib import Path

from daemon.observe.memory_use import COUNTED_PASSAGES, SAMPLE_S, WINDOW_S, MemoryForecast, anonymous_bytes

MIB = 1 << 20


def test_only_memory_without_a_file_behind_it_counts_in_swap_too(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("VmRSS:\t  900 kB\nRssAnon:\t  300 kB\nRssFile:\t  600 kB\nVmSwap:\t   50 kB\n")
    assert anonymous_bytes(status) == 350 << 10
    assert anonymous_bytes() > MIB
    assert anonymous_bytes(tmp_path / "nowhere") == 0


def test_a_growing_memory_is_full_when_its_room_is_used_up_at_the_present_rate() -> None:
    forecast = MemoryForecast(100 * MIB)
    assert forecast.use(110 * MIB, 400 * MIB, 1024, now=0.0).full_in_s is None  # no rate yet
    use = forecast.use(120 * MIB, 400 * MIB, 2048, now=100.0)
    assert use.bytes_per_passage == 20 * MIB // 2048
    assert use.room_passages == 280 * MIB // use.bytes_per_passage
    assert use.full_in_s == use.room_passages / 10.24
    # Ten minutes without anything new: it is never full.
    forecast.use(120 * MIB, 400 * MIB, 2048, now=100.0 + SAMPLE_S)
    assert forecast.use(120 * MIB, 400 * MIB, 2048, now=101.0 + SAMPLE_S + WINDOW_S).full_in_s is None


def test_a_small_memory_or_one_without_a_limit_has_no_forecast() -> None:
    forecast = MemoryForecast(0)
    assert forecast.use(MIB, 2 * MIB, COUNTED_PASSAGES - 1, now=0.0).bytes_per_passage is None
    unbounded = forecast.use(MIB, None, COUNTED_PASSAGES, now=20.0)
    assert unbounded.bytes_per_passage == MIB // COUNTED_PASSAGES
    assert unbounded.room_passages is None
