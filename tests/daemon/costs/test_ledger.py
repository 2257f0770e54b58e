"""The ledger adds up calls by day, source and purpose, and survives restarts, crashes and a disk that takes no more."""

import asyncio
import json
import os
from datetime import date
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from daemon import append_file
from daemon.costs.ledger import CostKey, CostLedger, Price, charged_to
from memory.encoder.hashing import HashEncoder
from store.durable_files import PART
from store.store import Store

DAY_S = 86400.0
PRICE = Price(2.0, 8.0)


class Clock:
    """Unix seconds that a test sets."""

    def __init__(self, now: float = 0.5 * DAY_S) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def totals(ledger: CostLedger) -> dict[CostKey, tuple[int, int, int, float]]:
    return {key: (s.calls, s.prompt, s.completion, round(s.money, 9)) for key, s in ledger.entries()}


CALLS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([None, "/drive", "mail"]),
        st.sampled_from(["entities", "triples", "filter"]),
        st.integers(0, 5000),
        st.integers(0, 500),
    ),
    max_size=30,
)


@given(CALLS)
def test_ledger_entries_are_sums_of_calls_and_survive_a_restart(tmp_path_factory, calls) -> None:
    file = tmp_path_factory.mktemp("ledger") / "costs.jsonl"
    clock = Clock()
    expected: dict[CostKey, tuple[int, int, int, float]] = {}
    ledger = CostLedger(file, lambda: PRICE, clock)
    for day, source, purpose, prompt, completion in sorted(calls, key=lambda call: call[0]):
        clock.now = day * DAY_S + 1
        with charged_to(source):
            ledger.count(purpose, prompt, completion)
        key = CostKey(date.fromordinal(date(1970, 1, 1).toordinal() + day).isoformat(), source, purpose)
        before = expected.get(key, (0, 0, 0, 0.0))
        money = (2.0 * prompt + 8.0 * completion) / 1e6
        expected[key] = (before[0] + 1, before[1] + prompt, before[2] + completion, round(before[3] + money, 9))
    assert totals(ledger) == expected
    last_day = max((key.day for key in expected), default="")
    assert ledger.today().tokens == sum(p + c for key, (_, p, c, _) in expected.items() if key.day == last_day)
    # Not closed: as after kill -9. The file may end in a part of a line.
    with file.open("a") as torn:
        torn.write('{"day": "1970-01-01", "sour')
    assert totals(CostLedger(file, lambda: PRICE, clock)) == expected
    assert len(file.read_text().splitlines()) == len(expected), "the start left one line per entry"


def test_ledger_of_a_new_day_starts_at_zero_and_keeps_earlier_days() -> None:
    clock = Clock()
    ledger = CostLedger(None, lambda: None, clock)
    ledger.count("filter", 10, 1)
    clock.now += DAY_S
    assert ledger.today().tokens == 0
    assert [key.day for key, _ in ledger.entries()] == ["1970-01-01"]
    assert ledger.entries(since=date(1970, 1, 2)) == []


def test_concurrent_tasks_charge_their_own_sources() -> None:
    ledger = CostLedger(None, lambda: None, Clock())

    async def extract(source: str, calls: int) -> None:
        with charged_to(source):
            for _ in range(calls):
                await asyncio.sleep(0)
                ledger.count("triples", 1, 1)

    async def run() -> None:
        await asyncio.gather(extract("a", 3), extract("b", 5))
        ledger.count("filter", 1, 1)

    asyncio.run(run())
    assert {key.source: spent.calls for key, spent in ledger.entries()} == {"a": 3, "b": 5, None: 1}


def test_calls_are_charged_at_the_price_of_their_time() -> None:
    price = Price(1.0, 1.0)
    ledger = CostLedger(None, lambda: price, Clock())
    ledger.count("filter", 1_000_000, 0)
    price = Price(3.0, 1.0)
    ledger.count("filter", 1_000_000, 0)
    assert ledger.today().money == 4.0


def test_full_disk_loses_no_counted_call_and_leaves_no_partial_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(append_file, "RETRY_S", 0.0)
    file = tmp_path / "costs.jsonl"
    ledger = CostLedger(file, lambda: None, Clock())
    ledger.count("filter", 1, 0)
    out = ledger._file._out
    assert out is not None
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, out.fileno())
    os.close(full)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        ledger.count("filter", 2, 0)
        assert os.listdir(tmp_path) == ["costs.jsonl"]
    assert ledger.today().prompt == 3
    ledger.count("filter", 4, 0)
    assert totals(CostLedger(file, lambda: None, Clock())) == totals(ledger)


def test_failed_ledger_write_is_retried_only_after_a_pause(tmp_path: Path) -> None:
    blocked = tmp_path / f"costs.jsonl{PART}"
    blocked.mkdir()
    ledger = CostLedger(tmp_path / "costs.jsonl", lambda: None, Clock())
    with capture_logs() as logged:
        ledger.count("filter", 1, 0)
        blocked.rmdir()
        ledger.count("filter", 1, 0)
    assert not (tmp_path / "costs.jsonl").exists(), "the next try comes after a pause"
    assert [line["event"] for line in logged] == ["lines_not_written"]
    ledger.close()
    assert totals(CostLedger(tmp_path / "costs.jsonl", lambda: None, Clock())) == totals(ledger)


def test_ledger_writes_no_file_into_a_replaced_store_folder(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with Store(folder, HashEncoder(8).identity) as store:
        ledger = CostLedger(folder / "costs.jsonl", lambda: None, Clock(), store.check_folder)
        folder.rename(tmp_path / "elsewhere")
        folder.mkdir()
        ledger.count("filter", 1, 0)
        ledger.close()
        assert list(folder.iterdir()) == []


def test_a_large_file_is_rewritten_with_one_line_per_entry(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(append_file, "REWRITE_BYTES", 1000)
    synced: list[str] = []
    sync = os.fsync

    def noted(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        sync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    file = tmp_path / "costs.jsonl"
    ledger = CostLedger(file, lambda: None, Clock())
    for _ in range(200):
        ledger.count("filter", 1, 0)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) < 15
    assert len(synced) > 2 and set(synced) == {f"{file}{PART}", str(tmp_path)}, "a power failure loses no whole file"
    assert sum(line["calls"] for line in lines) == 200
