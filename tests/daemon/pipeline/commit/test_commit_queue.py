"""The changes that form a batch: fresh ones first, bulk soon after, and the changes of one key in order."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from consumers.types import FileMoved, FileRemoved, Fingerprint
from daemon.pipeline.backpressure import QueueLimits
from daemon.pipeline.commit import commit_queue
from daemon.pipeline.commit.commit_queue import BATCH_MAX_CHANGES, FRESH_MAX_PASSAGES, CommitQueue, Rank
from daemon.pipeline.incoming import lanes
from daemon.pipeline.incoming.inbox_progress import InboxPlace
from daemon.pipeline.incoming.lanes import FRESH_PER_SOURCE, group_of, of_burst
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work_items import Change, DocumentChange, ExtractionsFound, Group, Task, Urgency, Work
from memory.encoder import make_encoder
from store.store import Store
from store.types import Extraction, PassageText
from tests.daemon.pipeline.any_owner import AnyOwner

MOST = 96


def change(
    key: str, urgency: Urgency = Urgency.FRESH, passages: int = 1, source: str = "/drive", task: Task | None = None
) -> DocumentChange:
    work = Work(key, task or FileRemoved(key, source), source, urgency=urgency)
    return DocumentChange(work, texts={str(n): PassageText(str(n), "", "text") for n in range(passages)})


def queue_of(*changes: Change, limits: QueueLimits | None = None) -> CommitQueue:
    queue = CommitQueue(limits or QueueLimits())
    for each in changes:
        queue.put_now(each)
    return queue


def keys(batch: list[Change]) -> list[str]:
    return [each.work.key for each in batch if isinstance(each, DocumentChange)]


def test_fresh_changes_form_a_batch_before_bulk() -> None:
    bulk = [change(f"bulk {n}", Urgency.BULK) for n in range(200)]
    queue = queue_of(*bulk, change("saved"))
    assert keys(queue.next_batch(MOST)) == ["saved"]
    assert keys(queue.next_batch(MOST)) == [f"bulk {n}" for n in range(MOST)]


def test_bulk_gets_every_second_batch_during_continuous_fresh_changes() -> None:
    queue = queue_of(*[change(f"bulk {n}", Urgency.BULK) for n in range(10)])
    batches = []
    for number in range(10):
        queue.put_now(change(f"saved {number}"))
        batches.append(keys(queue.next_batch(2)))
    assert sum(batch[0].startswith("bulk") for batch in batches) == 5


def test_a_long_fresh_document_does_not_hold_up_a_short_one() -> None:
    queue = queue_of(change("long", passages=FRESH_MAX_PASSAGES + 1), change("short"))
    assert keys(queue.next_batch(MOST)) == ["short"]
    assert keys(queue.next_batch(MOST)) == ["long"]


def test_sources_take_turns_in_a_batch() -> None:
    queue = queue_of(*[change(f"a {n}", source="a") for n in range(5)], change("b", source="b"))
    assert keys(queue.next_batch(3)) == ["a 0", "b", "a 1"]


def test_burst_of_parsed_changes_does_not_delay_a_single_save() -> None:
    burst = [change(f"tree/{n}", source="drive") for n in range(90)]
    queue = queue_of(*burst, change("notes/saved", source="drive"))
    first = keys(queue.next_batch(MOST))
    assert first == [*(f"tree/{n}" for n in range(83, 90)), "notes/saved"], "eight of a source are fresh"
    assert queue.room[Urgency.FRESH].items == 83, "what fell to bulk keeps the room that it took"
    assert keys(queue.next_batch(MOST)) == [f"tree/{n}" for n in range(83)]
    for n in range(3):
        queue.put_now(change(f"tree/{n}", source="drive"))
    queue.put_now(change("bulk", Urgency.BULK))
    assert keys(queue.next_fresh_batch(MOST, [])) == ["tree/0", "tree/1", "tree/2"], "the burst is over"


def test_largest_of_several_add_requests_becomes_bulk() -> None:
    def added(request: int, number: int) -> DocumentChange:
        made = change(f"added:{request}-{number}", source="added")
        made.work.inbox_places = [InboxPlace(request, number)]
        return made

    queue = queue_of(*[added(1, n) for n in range(20)], added(2, 0), added(2, 1))
    assert keys(queue.next_batch(MOST))[-2:] == ["added:2-0", "added:2-1"]


def test_earlier_bulk_change_of_a_key_is_committed_before_its_fresh_one() -> None:
    moved = FileMoved("old", "new", b"/new", "/drive", Fingerprint(1, 1, 1, "d"))
    bulk = [change(f"bulk {n}", Urgency.BULK) for n in range(3)]
    queue = queue_of(*bulk, change("new", Urgency.BULK, task=moved), change("old"))
    assert keys(queue.next_batch(MOST)) == ["new"]
    order = [key for _ in range(2) for key in keys(queue.next_batch(MOST))]
    assert sorted(order) == ["bulk 0", "bulk 1", "bulk 2", "old"]


def test_fresh_batch_that_interrupts_another_excludes_its_keys() -> None:
    queue = queue_of(change("a"), change("b"), change("bulk", Urgency.BULK))
    assert keys(queue.next_fresh_batch(MOST, [change("a", Urgency.BULK)])) == ["b"]
    assert keys(queue.next_fresh_batch(MOST, [change("a", Urgency.BULK)])) == []


def test_queue_full_of_bulk_accepts_fresh_changes() -> None:
    async def scenario() -> None:
        queue = CommitQueue(QueueLimits(queue_passages=2))
        for number in range(2):
            await queue.put(change(f"bulk {number}", Urgency.BULK))
        more = asyncio.create_task(queue.put(change("more", Urgency.BULK)))
        await asyncio.wait_for(queue.put(change("saved")), 10)
        assert not more.done()
        assert keys(queue.next_batch(MOST)) == ["saved"]
        assert keys(queue.next_batch(MOST)) == ["bulk 0", "bulk 1"]
        await asyncio.wait_for(more, 10)
        assert [room.items for room in queue.room.values()] == [0, 1]

    asyncio.run(scenario())


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(list(Urgency)), st.integers(0, 50), st.booleans()),
        max_size=60,
    )
)
def test_every_change_is_committed_once_and_changes_of_a_key_in_order(
    came: list[tuple[str, Urgency, int, bool]],
) -> None:
    queue = queue_of()
    numbers = count()
    put: dict[int, int] = {}
    keys_put: list[tuple[str, int]] = []
    committed: list[tuple[str, int]] = []

    def commit() -> None:
        batch = [each for each in queue.next_batch(MOST) if isinstance(each, DocumentChange)]
        assert len({each.work.key for each in batch}) == len(batch), "steps of one key stay apart"
        committed.extend((each.work.key, put[id(each)]) for each in batch)

    kept = []
    for key, urgency, passages, commits in came:
        each = change(key, urgency, passages)
        kept.append(each)
        put[id(each)] = next(numbers)
        keys_put.append((key, put[id(each)]))
        queue.put_now(each)
        if commits:
            commit()
    while queue:
        commit()
    assert sorted(committed) == sorted(keys_put)
    for key in "abcdef":
        of_key = [number for name, number in committed if name == key]
        assert of_key == sorted(of_key)
    assert all(not room.items and not room.bytes for room in queue.room.values())


def renamed(number: int) -> DocumentChange:
    old, new = f"old/{number}", f"new/{number}"
    return change(new, task=FileMoved(old, new, new.encode(), "/drive", Fingerprint(1, 1, 1, "d")))


def steps(call: Callable[[], object]) -> int:
    """Returns the number of bytecode instructions of the queue's module that the call executes."""
    counted = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal counted
        if frame.f_code.co_filename not in (commit_queue.__file__, lanes.__file__):
            return None
        frame.f_trace_opcodes = True
        counted += event == "opcode"
        return trace

    earlier = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(earlier)
    return counted


def test_work_of_a_batch_is_independent_of_the_size_of_a_renamed_folder() -> None:
    def work(files: int) -> list[int]:
        queue = queue_of(*map(renamed, range(files - 1)))
        put = steps(lambda: queue.put_now(renamed(files - 1)))
        batches = [steps(lambda: queue.next_batch(MOST)) for _ in range(3)]
        saved = change("saved")
        queue.put_now(saved)
        fresh = steps(lambda: queue.next_fresh_batch(MOST, [renamed(0)]))
        assert len(queue) == files - FRESH_PER_SOURCE - 2 * MOST
        return [put, *batches, fresh]

    few, many = work(300), work(3_000)
    assert all(b < 1.5 * a for a, b in zip(few, many, strict=True)), (few, many)


def test_fresh_work_for_a_key_raises_its_waiting_change(tmp_path: Path) -> None:
    async def scenario() -> None:
        encoder = make_encoder("hash", "", 64, "cpu")
        with Store(tmp_path, encoder.identity) as store:
            absent = cast("Any", None)
            pipeline = Pipeline(store, encoder, absent, absent, lambda *_, **__: None, 1, owners=AnyOwner())
            queue = pipeline.committer.queue
            for key in ("a", "b"):
                each = change(key, Urgency.BULK)
                pipeline.intake.take(pipeline.intake.put(each.work))
                queue.put_now(each)
            pipeline.intake.put(change("b").work)
            assert keys(queue.next_batch(MOST)) == ["b"]
            assert keys(queue.next_batch(MOST)) == ["a"]

    asyncio.run(scenario())


class RankingQueue:
    """The specification of `CommitQueue`: ranks all waiting changes for each batch."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.fresh: dict[str, dict[Work, None]] = {}
        self.groups: Counter[Group] = Counter()
        self.batches = 0

    def put_now(self, change: Change) -> None:
        change.lane = Urgency.BULK if isinstance(change, ExtractionsFound) else change.work.urgency
        if isinstance(change, DocumentChange) and change.lane is Urgency.FRESH:
            change.group = group_of(change.work)
            self.groups[change.group] += 1
            if self.rank(change) is Rank.FRESH:
                waiting = self.fresh.setdefault(change.work.source, {})
                waiting[change.work] = None
                if len(waiting) > FRESH_PER_SOURCE:
                    demoted = of_burst(waiting, self.groups)
                    demoted.urgency = Urgency.BULK
                    del waiting[demoted]
        self.changes.append(change)

    def next_batch(self, max_passages: int) -> list[Change]:
        ranked = self.ranked()
        self.batches += 1
        fresh = [each for each in ranked if each[0] is Rank.FRESH]
        others = [each for each in ranked if each[0] is not Rank.FRESH]
        if fresh and (not others or self.batches % 2):
            return self.take(fresh, max_passages)
        if self.batches % 4 == 0:
            others.sort(key=lambda each: (-each[0], each[1:3]))
        return self.take(others, max_passages)

    def next_fresh_batch(self, max_passages: int, under_way: Iterable[Change]) -> list[Change]:
        touched = {key for change in under_way for key in self.keys(change)}
        return self.take([each for each in self.ranked() if each[0] is Rank.FRESH], max_passages, touched)

    def ranked(self) -> list[tuple[Rank, int, int, Change]]:
        ranks: dict[str, Rank] = {}
        first: dict[str, int] = {}
        for number, change in enumerate(self.changes):
            for key in self.keys(change):
                ranks[key] = min(ranks.get(key, Rank.BULK), self.rank(change))
                first.setdefault(key, number)
        turns: Counter[tuple[Rank, str]] = Counter()
        ranked = []
        for number, change in enumerate(self.changes):
            keys = self.keys(change)
            if all(first[key] == number for key in keys):
                rank = min([self.rank(change), *(ranks[key] for key in keys)])
                turn = rank, "" if isinstance(change, ExtractionsFound) else change.work.source
                turns[turn] += 1
                ranked.append((rank, turns[turn], number, change))
        return sorted(ranked, key=lambda each: each[:3])

    def take(
        self, ranked: list[tuple[Rank, int, int, Change]], max_passages: int, keys: Iterable[str] = ()
    ) -> list[Change]:
        taken: list[Change] = []
        touched = set(keys)
        size = 0
        for _, _, _, change in ranked:
            if taken and (size + change.size > max_passages or len(taken) == BATCH_MAX_CHANGES):
                break
            if touched.isdisjoint(self.keys(change)):
                touched |= self.keys(change)
                size += change.size
                taken.append(change)
        self.changes = [change for change in self.changes if not any(change is each for each in taken)]
        for change in taken:
            if isinstance(change, DocumentChange) and change.group is not None:
                self.groups[change.group] -= 1
                self.fresh.get(change.work.source, {}).pop(change.work, None)
        return taken

    @staticmethod
    def rank(change: Change) -> Rank:
        if isinstance(change, ExtractionsFound) or change.work.urgency is Urgency.BULK:
            return Rank.BULK
        return Rank.FRESH if change.size <= FRESH_MAX_PASSAGES else Rank.LONG

    @staticmethod
    def keys(change: Change) -> set[str]:
        if isinstance(change, ExtractionsFound):
            return set()
        old = getattr(change.work.task, "old_uri", None)
        return {change.work.key} | ({old} if old else set())


def random_operation(chance: random.Random) -> tuple[Any, ...]:
    def key() -> str:
        return f"{chance.choice('xyz')}/{chance.randrange(12)}"

    name = chance.choices(
        ("put", "more of its work", "raise", "extractions", "batch", "fresh batch"), (20, 2, 2, 1, 3, 2)
    )[0]
    if name == "put":
        old = key() if chance.random() < 0.3 else None
        return name, key(), chance.choice(list(Urgency)), chance.choice((1, 1, 1, 2, 50)), chance.choice("aab"), old
    if name == "more of its work":
        return name, chance.randrange(30), chance.choice((1, 50))
    if name == "fresh batch":
        return name, chance.choice((1, 5, MOST)), [key() for _ in range(3)]
    return name, chance.choice((1, 5, MOST)) if name == "batch" else chance.randrange(1, 30)


class Replay:
    """Applies operations to one queue. Each change has a number in the order of arrival."""

    def __init__(self, queue: "CommitQueue | RankingQueue") -> None:
        self.queue = queue
        self.works: list[Work] = []
        self.numbers: dict[int, int] = {}
        self.kept: list[Change] = []

    def put(self, each: Change) -> None:
        self.numbers[id(each)] = len(self.kept)
        self.kept.append(each)
        self.queue.put_now(each)

    def apply(self, operation: tuple[Any, ...]) -> list[int]:
        """Returns the numbers of the taken changes."""
        name, *rest = operation
        if name == "put":
            key, urgency, passages, source, old = rest
            task = FileMoved(old, key, b"/f", source, Fingerprint(1, 1, 1, "d")) if old else None
            each = change(key, urgency, passages, source, task)
            self.works.append(each.work)
            self.put(each)
        elif name == "extractions":
            self.put(ExtractionsFound({str(n): cast("Extraction", None) for n in range(rest[0])}))
        elif name in ("more of its work", "raise") and self.works:
            work = self.works[-1 - rest[0] % len(self.works)]
            if name == "raise":
                work.urgency = Urgency.FRESH
                if isinstance(self.queue, CommitQueue):
                    self.queue.update_rank(work)
            else:
                self.put(DocumentChange(work, texts={str(n): PassageText(str(n), "", "text") for n in range(rest[1])}))
        elif name == "batch":
            return [self.numbers[id(each)] for each in self.queue.next_batch(rest[0])]
        elif name == "fresh batch":
            taken = self.queue.next_fresh_batch(rest[0], list(map(change, rest[1])))
            return [self.numbers[id(each)] for each in taken]
        return []


@given(st.integers(0, 1 << 32))
def test_batches_are_those_of_ranking_all_changes(seed: int) -> None:
    chance = random.Random(seed)
    queue, specification = CommitQueue(QueueLimits()), RankingQueue()
    real, expected = Replay(queue), Replay(specification)
    for _ in range(120):
        operation = random_operation(chance)
        assert real.apply(operation) == expected.apply(operation)
        assert len(queue) == len(specification.changes)
    while specification.changes:
        assert real.apply(("batch", 5)) == expected.apply(("batch", 5))
    assert len(queue) == 0
