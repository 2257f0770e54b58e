"""The order of work: fresh before bulk, alternating between sources, and each key's work in order."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.types import FileRemoved
from daemon.pipeline.incoming.intake import Intake
from daemon.pipeline.incoming.lanes import FRESH_IN_A_ROW, FRESH_PER_SOURCE
from daemon.pipeline.work_items import Urgency, Work

DRIVE, OTHER = "/drive", "/other"


def put(intake: Intake, name: str, urgency: Urgency = Urgency.FRESH, source: str = DRIVE) -> Work:
    uri = f"file://{source}/{name}"
    return intake.put(Work(uri, FileRemoved(uri, source), source, urgency=urgency))


def take_work(intake: Intake, count: int | None = None, fresh_only: bool = False) -> list[Work]:
    """Takes `count` pieces of work, or all, each completed before the next is taken."""
    out: list[Work] = []
    while (count is None or len(out) < count) and (work := intake.take(fresh_only=fresh_only)) is not None:
        intake.done(work)
        out.append(work)
    return out


def names(works: Sequence[Work]) -> list[str]:
    return [work.key.rpartition("/")[2] for work in works]


def test_saved_file_is_taken_before_files_of_a_scan() -> None:
    intake = Intake()
    for number in range(2_500):
        put(intake, f"scan/{number}", Urgency.BULK)
    put(intake, "saved")
    assert names(take_work(intake, 2)) == ["saved", "0"]


def test_scanned_file_becomes_fresh_if_it_is_saved_and_stays_fresh() -> None:
    intake = Intake()
    for number in range(10):
        put(intake, f"scan/{number}", Urgency.BULK)
    put(intake, "scan/7")
    assert names(take_work(intake, 2)) == ["7", "0"]
    put(intake, "scan/8", Urgency.FRESH)
    put(intake, "scan/8", Urgency.BULK)
    assert names(take_work(intake, 1)) == ["8"], "what was fresh stays so when a scan finds it"


@pytest.mark.parametrize("directories", [1, 5, 50])
def test_single_save_is_taken_early_during_a_checkout_in_its_folder(directories: int) -> None:
    intake = Intake()
    for number in range(250):
        put(intake, f"checkout/{number % directories}/{number}")
    put(intake, "notes/mine")
    for number in range(250, 500):
        put(intake, f"checkout/{number % directories}/{number}")
    first = names(take_work(intake, FRESH_PER_SOURCE))
    assert "mine" in first
    assert len(take_work(intake)) == 501 - FRESH_PER_SOURCE


def test_fresh_work_alternates_between_sources() -> None:
    intake = Intake()
    for number in range(FRESH_PER_SOURCE):
        put(intake, f"a/{number}")
    put(intake, "b/0", source=OTHER)
    assert names(take_work(intake, 3)) == ["0", "0", "1"]


def test_a_burst_does_not_wait_for_a_whole_first_index() -> None:
    intake = Intake()
    for number in range(500):
        put(intake, f"scan/{number}", Urgency.BULK)
    for number in range(100):
        put(intake, f"checkout/c{number}")
    first = names(take_work(intake, 200))
    assert sum(name.startswith("c") for name in first) > 90


def test_bulk_gets_a_fixed_share_during_continuous_fresh_work() -> None:
    intake = Intake()
    for number in range(50):
        put(intake, f"scan/{number}", Urgency.BULK)
    bulk = 0
    for number in range(400):
        put(intake, f"{number}/fresh")
        bulk += take_work(intake, 1)[0].urgency is Urgency.BULK
    assert bulk == 400 // (FRESH_IN_A_ROW + 1)


def test_take_with_fresh_only_never_returns_bulk() -> None:
    intake = Intake()
    put(intake, "scan/0", Urgency.BULK)
    assert take_work(intake, fresh_only=True) == []
    put(intake, "saved")
    assert names(take_work(intake, fresh_only=True)) == ["saved"]


def test_running_bulk_becomes_fresh_if_a_fresh_change_waits_for_it() -> None:
    intake = Intake()
    work = put(intake, "scan/0", Urgency.BULK)
    assert intake.take() is work
    put(intake, "scan/0")
    assert work.urgency is Urgency.FRESH
    assert intake.take() is None, "the later change waits for the earlier"


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"), st.integers(0, 60), st.sampled_from((DRIVE, OTHER, "third")), st.sampled_from(list(Urgency))
        ),
        st.tuples(st.sampled_from(("take", "take fresh", "done"))),
    ),
    max_size=300,
)


@given(OPERATIONS)
def test_random_operations_lose_no_work_and_keep_the_priority_rules(operations: list[tuple[object, ...]]) -> None:
    intake = Intake()
    active: list[Work] = []
    waiting: dict[str, Work] = {}
    fresh_in_a_row = 0
    for operation, *rest in operations:
        if operation == "put":
            number, source, urgency = rest
            assert isinstance(number, int)
            assert isinstance(source, str)
            assert isinstance(urgency, Urgency)
            work = put(intake, f"{number % 7}/{number}", urgency, source)
            waiting[work.key] = work
            fresh = [each for each in waiting.values() if each.urgency is Urgency.FRESH]
            assert sum(each.source == source for each in fresh) <= FRESH_PER_SOURCE
        elif operation == "done":
            if active:
                intake.done(active.pop(0))
        else:
            under_way = {each.key for each in active}
            free = [each for each in waiting.values() if each.key not in under_way]
            took = intake.take(fresh_only=operation == "take fresh")
            if took is None:
                assert not [each for each in free if operation == "take" or each.urgency is Urgency.FRESH]
                continue
            assert took in free, "the latest of its key, and nothing of the key is under way"
            assert took.urgency is Urgency.FRESH or operation == "take"
            if took.urgency is Urgency.BULK and any(each.urgency is Urgency.FRESH for each in free):
                assert fresh_in_a_row >= FRESH_IN_A_ROW, "bulk before its turn"
            fresh_in_a_row = fresh_in_a_row + 1 if took.urgency is Urgency.FRESH else 0
            active.append(took)
            del waiting[took.key]
    for work in active:
        intake.done(work)
    assert {work.key for work in take_work(intake)} == set(waiting)
    assert len(intake) == 0


@pytest.mark.parametrize("noisy", [3, 300])
def test_saved_file_waits_for_at_most_one_turn_of_each_source(noisy: int) -> None:
    intake = Intake()
    for number in range(noisy):
        for source in ("a", "b", "c"):
            put(intake, f"{number}/file", source=source)
    put(intake, "notes/mine", source=DRIVE)
    assert "mine" in names(take_work(intake, 5)), "one turn of each other source, and one of bulk"


def test_ocr_waits_for_all_other_work_and_a_change_of_the_file_replaces_it() -> None:
    intake = Intake()
    scans = [put(intake, f"scan/{number}", Urgency.BULK) for number in range(2)]
    for scan in scans:
        assert intake.take() is scan
        intake.put_ocr(scan)
        intake.done(scan)
    other = put(intake, "note", Urgency.BULK)
    assert intake.take_ocr() is None, "other work waits"
    assert intake.take() is other and intake.take() is None, "readers of files take no OCR work"
    intake.done(other)
    put(intake, "scan/0")
    changed = intake.take()
    assert changed is not None and not changed.recognise, "the change is read first, not by OCR"
    intake.done(changed)
    pictures = intake.take_ocr()
    assert pictures is not None and pictures.recognise and names([pictures]) == ["1"]
    put(intake, "scan/1")
    intake.put_ocr(pictures)
    assert [work.recognise for work in intake.of(pictures.key)] == [False, True], "a later version is not replaced"
    intake.pause("no memory")
    assert intake.take_ocr() is None


@pytest.mark.parametrize("way", ["superseded", "ocr"])
def test_drained_waits_for_work_that_replaces_or_continues_running_work(way: str) -> None:
    async def scenario() -> None:
        intake = Intake()
        first = intake.take(put(intake, "a"))
        assert first is not None
        drained = asyncio.create_task(intake.drained())
        await asyncio.sleep(0)
        if way == "ocr":
            intake.put_ocr(first)
        else:
            put(intake, "a")
            intake.hand_over(first)
        intake.done(first)
        put(intake, "later")
        await asyncio.sleep(0.01)
        assert not drained.done()
        work = intake.waiting_for(first.key)
        assert work is not None and intake.take(work) is work
        intake.done(work)
        async with asyncio.timeout(5):
            await drained

    asyncio.run(scenario())
