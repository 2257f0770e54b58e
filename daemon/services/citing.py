"""Citations: passages with the documents that held them at the commit a question is about."""

from collections.abc import Iterable, Sequence

from daemon.contract import Citation
from store.pinned import Pinned


def citation(pinned: Pinned, rank: int, id: str, title: str, text: str, points: Sequence[str] = ()) -> Citation:
    """The passage under the first of its documents' URIs; its own title, else the document's."""
    uris = pinned.users(id)
    document = pinned.document(uris[0]) if uris else None
    return Citation(
        rank=rank,
        document=uris[0] if uris else "",
        title=title or (document.title if document else ""),
        text=text,
        id=id,
        points=list(points),
    )


def by_rank(citations: Iterable[Citation]) -> list[Citation]:
    return sorted(citations, key=lambda each: each.rank)
