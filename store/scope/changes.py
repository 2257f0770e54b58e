"""The changes of recent commits, and the batch that updates a scope to a later commit."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from store.change.pending_inputs import missing_vectors
from store.errors import IncompleteBatch
from store.fixed_point import Vector
from store.index.live_index import LiveIndex
from store.types import Batch, Document, Extraction, State

KEPT_CHANGES = 20_000
"""Maximum number of changed documents and passages that are kept. A scope from before the kept changes is rebuilt."""


@dataclass(slots=True)
class Changes:
    """The changes of commits: URIs of documents, and ids of passages that were extracted again."""

    documents: set[str] = field(default_factory=set)
    passages: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.documents) + len(self.passages)

    def add(self, other: "Changes") -> None:
        self.documents |= other.documents
        self.passages |= other.passages


class RecentChanges:
    """The changes of recent commits. The commit thread adds, other threads read. No commit may be applied during a call."""

    def __init__(self) -> None:
        self._entries: deque[tuple[int, Changes]] = deque()
        self._size = 0
        self._forgotten = 0
        """The last commit whose changes were dropped."""

    def add(self, commit: int, changes: Changes) -> None:
        self._entries.append((commit, changes))
        self._size += len(changes)
        while self._size > KEPT_CHANGES:
            self._forgotten, oldest = self._entries.popleft()
            self._size -= len(oldest)

    def since(self, commit: int) -> Changes | None:
        """Returns the changes of all commits after `commit`; None if some of these changes were dropped."""
        if commit < self._forgotten:
            return None
        found = Changes()
        for number, changes in reversed(self._entries):
            if number <= commit:
                break
            found.add(changes)
        return found

    def clear(self, commit: int) -> None:
        """Drops all changes, because the commit `commit` renumbers the rows."""
        self._entries.clear()
        self._size, self._forgotten = 0, commit


def batch_of(changes: Changes, scoped: LiveIndex, whole: LiveIndex, wanted: Callable[[Document], bool]) -> Batch | None:
    """Returns the batch that updates `scoped` to the state of `whole`; None if nothing in the scope has changed.

    The caller must prevent commits from being applied during the call.
    """
    known = (whole.documents.get(uri) for uri in sorted(changes.documents))
    documents = tuple(document for document in known if document is not None and wanted(document))
    present = {document.uri for document in documents}
    removed = tuple(sorted(uri for uri in changes.documents if uri in scoped.documents and uri not in present))
    extracted_again = {passage for passage in changes.passages if _lives(scoped, passage)}
    if not documents and not removed and not extracted_again:
        return None
    refs = [ref for document in documents if document.state is State.INDEXED for ref in document.passages]
    passages = sorted({ref.passage for ref in refs} | extracted_again)
    new = tuple(whole.passages[whole.passage_rows[id]] for id in passages if id not in scoped.passage_rows)
    batch = Batch(documents, removed, new, tuple(_extractions(passages, whole)))
    missing = missing_vectors(scoped, batch)

    def vector(kind: str, row: int | None) -> Vector:
        if row is None:
            raise IncompleteBatch("the memory lacks a text that the scope needs")
        found: Vector = whole.vectors[kind].view().rows([row])[0]
        return found

    return replace(
        batch,
        passage_vectors={text.id: vector("passages", whole.passage_rows.get(text.id)) for text in missing.passages},
        phrase_vectors={text: vector("phrases", whole.phrase_rows.get(text)) for text in missing.phrases},
        triple_vectors={triple: vector("triples", whole.triple_row(triple)) for triple in missing.triples},
    )


def _lives(index: LiveIndex, passage: str) -> bool:
    row = index.passage_rows.get(passage)
    return row is not None and bool(index.holders[row])


def _extractions(passages: list[str], whole: LiveIndex) -> Iterator[Extraction]:
    for passage in passages:
        row = whole.passage_rows[passage]
        found, state = whole.extracted[row], whole.extraction_states.get(row)
        if found is not None and state is not None:
            triples = tuple(sorted(whole.triple(int(triple)) for triple in found))
            found_by = Extraction(passage, state.extractor, triples=triples)
            yield replace(found_by, status=state.status, attempts=state.attempts, error=state.error)


def restore_documents(scoped: LiveIndex, batch: Batch) -> None:
    """Replaces the documents of `batch` by the whole memory's documents, which have their original commit times."""
    scoped.documents.update((document.uri, document) for document in batch.documents)


def share_of_changes(index: LiveIndex) -> float:
    """Returns the ratio of changed edges to edges in the bases of the matrices. Each change makes queries slower."""
    changed = sum(matrix.change_count for matrix in index.matrices.values())
    return changed / max(sum(matrix.base_entries for matrix in index.matrices.values()), 1)


def share_of_dead(index: LiveIndex) -> float:
    """Returns the share of rows that are not living."""
    living = index.living
    return 1 - (living.passages + living.phrases + living.triples) / max(sum(index.stored().values()), 1)


def index_bytes(index: LiveIndex) -> int:
    """Estimates the bytes of an index in addition to the whole memory: vectors, sketches, edges, counts, Python objects."""
    edges = 16 * sum(matrix.base_entries + matrix.change_count for matrix in index.matrices.values())
    passages, phrases, triples = index.stored().values()
    if index.shares_rows:
        return index.crowding.bytes + edges + 60 * passages + 40 * phrases + 20 * triples
    vectors = sum(each.own_bytes for each in index.vectors.values())
    return index.crowding.bytes + edges + vectors + 300 * (passages + phrases + triples) + 100 * phrases
