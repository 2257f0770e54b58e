"""Link edges: from a passage with a link to the passages of the linked document.

An edge has type `attachment` from a document to a file inside it, `thread` from a message to the message that it answers, and
`link` otherwise. These edges are not stored. They are derived from the present documents, so an edge appears and vanishes with
its target.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from store.links.targets import PART_PREFIX, THREAD_SCHEME
from store.snapshot import DocumentSnapshot


@dataclass(frozen=True, slots=True)
class LinkEdge:
    """One link edge. `type` is `attachment`, `link` or `thread`. `row` is the row of the passage with the link, `target` the id
    of the passage that it leads to. `count` is the number of links of this type between the two."""

    type: str
    row: int
    target: str
    count: int


def link_edges(memory: DocumentSnapshot, passages: Sequence[int]) -> Iterator[LinkEdge]:
    """Yields the edges from the rows `passages`, in their order, then by target and type."""
    for row in passages:
        edges: Counter[tuple[str, str]] = Counter()
        for type, uri in _linked_documents(memory, row):
            document = memory.document(uri)
            ids = {ref.passage for ref in document.passages} if document is not None else set()
            edges.update((id, type) for id in ids - {memory.snapshot.passage_id(row)})
        for id, type in sorted(edges):
            yield LinkEdge(type, row, id, edges[id, type])


def _linked_documents(memory: DocumentSnapshot, row: int) -> Iterator[tuple[str, str]]:
    """Yields the type and target URI of each link in a passage that leads to another document."""
    passage = memory.snapshot.passage_id(row)
    for uri in memory.documents_with_passage(passage):
        document = memory.document(uri)
        for ref in document.passages if document is not None else ():
            for link in ref.links if ref.passage == passage else ():
                target = memory.snapshot.linked_document(link.target, uri)
                if target is not None and target != uri:
                    yield _edge_type(link.target, uri, target), target


def _edge_type(link_target: str, source: str, target: str) -> str:
    if target.startswith(f"{source}/" if "#" in source else f"{source}#"):
        return "attachment"
    return "thread" if link_target.startswith((PART_PREFIX, THREAD_SCHEME)) else "link"
