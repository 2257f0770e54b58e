"""The completed part of the inbox, as stored with each commit, compared with sets of numbers."""

import json

from hypothesis import given
from hypothesis import strategies as st

from daemon.pipeline.incoming.inbox_progress import DoneNumbers, InboxPlace, InboxProgress

numbers = st.sets(st.integers(0, 60))


@given(numbers, numbers)
def test_done_numbers_survive_serialisation_as_ranges(some: set[int], more: set[int]) -> None:
    done = DoneNumbers()
    for number in some:
        done.add(number)
    read = DoneNumbers.parse(str(done))
    for number in more:
        read.add(number)
    assert {number for number in range(70) if number in read} == some | more
    assert len(read) == len(some | more)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4)), max_size=40),
    st.sets(st.integers(0, 40)),
)
def test_restart_at_any_commit_restores_the_completed_documents(
    sizes: list[int], order: list[tuple[int, int]], starts: set[int]
) -> None:
    """Each document's commit stores the position; a start between any two commits continues from the last."""
    progress, done = InboxProgress(), set()
    for ticket, size in enumerate(sizes, 1):
        assert progress.unused == ticket
        progress.expect(ticket, size)
    places = [InboxPlace(ticket, at) for ticket, at in order if ticket <= len(sizes) and at < sizes[ticket - 1]]
    for number, place in enumerate(places):
        stored = json.loads(json.dumps(progress.position([place])))
        done.add(place)
        wholly = {t for t, size in enumerate(sizes, 1) if all((t, at) in done for at in range(size))}
        if number in starts:
            progress = InboxProgress(stored)
            assert progress.unused > len(sizes) - (len(wholly) == 0) or wholly != set(range(1, len(sizes) + 1))
            left = [ticket for ticket in range(1, len(sizes) + 1) if not progress.is_ticket_done(ticket)]
            progress.start_at(left)
            for ticket in left:
                progress.expect(ticket, sizes[ticket - 1])
        else:
            progress.done([place])
        assert {t for t in range(1, len(sizes) + 1) if progress.is_ticket_done(t)} == wholly
        for ticket, size in enumerate(sizes, 1):
            assert [progress.is_done(InboxPlace(ticket, at)) for at in range(size)] == [
                (ticket, at) in done for at in range(size)
            ]
            assert progress.left(ticket) == size - sum((ticket, at) in done for at in range(size))


def test_ticket_numbers_are_not_reused_after_a_restart() -> None:
    progress = InboxProgress()
    progress.expect(1, 1)
    stored = progress.position([InboxPlace(1, 0)])
    assert InboxProgress(stored).unused == 2
