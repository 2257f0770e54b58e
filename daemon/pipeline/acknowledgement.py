"""Tells a source that its work is committed, and stores the source's position in the same commit.

The pipeline only passes acknowledgements on and merges them; their meaning is known to the source alone.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol


class PositionTracker(Protocol):
    """Tracks how much of one ordered delivery, such as a Kafka partition, is committed. Belongs to the source."""

    def positions(self, parts: Collection[object]) -> Mapping[str, Any]:
        """Returns the positions, by name, to store in the commit that completes these acknowledgements.

        Must not change the tracker: a batch may be assembled several times before it is committed.
        """
        ...


class Acknowledgement(Protocol):
    """Accompanies a piece of work. All documents of one message share one acknowledgement."""

    @property
    def tracker(self) -> PositionTracker: ...

    def done(self) -> None:
        """Reports that one piece of work with this acknowledgement is committed."""
        ...


def merged_positions(acknowledgements: Iterable[Acknowledgement]) -> dict[str, Any]:
    """Returns the positions that sources store in the commit that completes all of these acknowledgements."""
    by_tracker: dict[PositionTracker, list[Acknowledgement]] = {}
    for acknowledgement in acknowledgements:
        by_tracker.setdefault(acknowledgement.tracker, []).append(acknowledgement)
    positions: dict[str, Any] = {}
    for tracker, parts in by_tracker.items():
        positions.update(tracker.positions(parts))
    return positions
