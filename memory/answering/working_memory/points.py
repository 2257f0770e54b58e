"""The working memory: a hypergraph of memory points over the entities of the graph (HGMem, section 3.3)."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """A memory point: a hyperedge that describes how several entities are related.

    `entities` are distinct, sorted, normalised phrases; the graph has at least one of them. `absent` are the entities that the
    graph lacks; the model named them. `passages` are the distinct ids of the supporting passages, at least one, in the order in
    which they were found.
    """

    id: str
    description: str
    entities: tuple[str, ...]
    passages: tuple[str, ...]
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """The working memory: a hypergraph whose hyperedges are `points` and whose vertices are their entities.

    `made` is the number of points ever created in this memory. The next point gets the id `p<made + 1>`, so ids are never
    reused.
    """

    points: tuple[MemoryPoint, ...] = ()
    made: int = 0

    @property
    def vertices(self) -> tuple[str, ...]:
        """The distinct entities of all points, sorted."""
        return tuple(sorted({entity for point in self.points for entity in point.entities}))

    def neighbours(self, entities: Iterable[str]) -> frozenset[str]:
        """Returns the vertices that share a point with one of `entities`. An entity of `entities` is included if it shares a
        point with another of them."""
        names = set(entities)
        found: set[str] = set()
        for point in self.points:
            inside = names.intersection(point.entities)
            if len(inside) > 1:
                found.update(point.entities)
            elif inside:
                found.update(set(point.entities) - inside)
        return frozenset(found)

    def point(self, id: str) -> MemoryPoint | None:
        return next((point for point in self.points if point.id == id), None)

    @property
    def entities_a_point(self) -> float:
        """The average number of entities per point, the paper's measure of complex relations; 0.0 without points."""
        return sum(len(point.entities) for point in self.points) / len(self.points) if self.points else 0.0
