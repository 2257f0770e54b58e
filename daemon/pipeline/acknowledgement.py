"""How a source hears that its work is committed, and how its position gets into the same commit.

The pipeline passes acknowledgements on and merges them; only the source knows what is behind them.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol


class PositionTracker(Protocol):
    """A source's account of what it delivered in one order, a Kafka partition say, and of how far that is committed."""

    def positions(self, parts: Collection[object]) -> Mapping[str, Any]:
        """The positions, by name, to store in the commit that completes these acknowledgements.

        It changes nothing: a batch may be assembled several times before it is committed.
        """
        ...


class Acknowledgement(Protocol):
    """Travels with one piece of work. A message of several documents gives each of them the same one."""

    @property
    def tracker(self) -> PositionTracker: ...

    def done(self) -> None:
        """One piece of work that carried this is committed."""
        ...


def merged_positions(acknowledgements: Iterable[Acknowledgement]) -> dict[str, Any]:
    """What the sources store in the commit that completes all of these."""
    by_tracker: dict[PositionTracker, list[Acknowledgement]] = {}
    for acknowledgement in acknowledgements:
        by_tracker.setdefault(acknowledgement.tracker, []).append(acknowledgement)
    positions: dict[str, Any] = {}
    for tracker, parts in by_tracker.items():
        positions.update(tracker.positions(parts))
    return positions
