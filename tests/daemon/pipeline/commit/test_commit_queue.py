"""The changes that form a batch: fresh ones first, bulk soon after, and the changes of one key in order."""

import asyncio
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from consumers.types import FileMoved, FileRemoved, Fingerprint
from daemon.pipeline.backpressure import QueueLimits
from daemon.pipeline.commit.commit_queue import FRESH_MAX_PASSAGES, CommitQueue
from daemon.pipeline.incoming.inbox_progress import InboxPlace
from daemon.pipeline.work_items import Change, DocumentChange, Task, Urgency, Work
from store.types import PassageText

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
