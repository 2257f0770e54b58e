"""The edges of links: from a passage to the passages of the document that a link in it leads to.

Nothing of them is stored. They follow from the documents that are there, so an edge comes and goes with its target.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from store.document_snapshot import DocumentSnapshot


def link_edges(memory: DocumentSnapshot, passages: Sequence[int]) -> Iterator[tuple[int, str, int]]:
    """(row, id, weight) of each edge: the row of the passage with the link, the id of the passage it leads to, and how many
    links lead from the one to the other. In the order of `passages`, which are rows, and of the ids."""
    for row in passages:
        targets: Counter[str] = Counter()
        for target in _linked_documents(memory, row):
            document = memory.document(target)
            ids = {ref.passage for ref in document.passages} if document is not None else set()
            targets.update(ids - {memory.snapshot.passage_id(row)})
        for id in sorted(targets):
            yield row, id, targets[id]


def _linked_documents(memory: DocumentSnapshot, row: int) -> Iterator[str]:
    """The URIs of the documents that the links in a passage lead to, one for each link."""
    passage = memory.snapshot.passage_id(row)
    for uri in memory.documents_with_passage(passage):
        document = memory.document(uri)
        for ref in document.passages if document is not None else ():
            for link in ref.links if ref.passage == passage else ():
                target = memory.snapshot.linked_document(link.target, uri)
                if target is not None and target != uri:
                    yield target
