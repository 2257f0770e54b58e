"""Updates a scope's index to a later commit with a batch of the scope's changed documents."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from store.index.live_index import LiveIndex
from store.scope.masked_index import MaskedIndex
from store.types import Batch, Document, Extraction, PassageText, State, Triple, Vector, is_statement


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


def batch_of(changes: Changes, scoped: LiveIndex, whole: LiveIndex, wanted: Callable[[Document], bool]) -> Batch | None:
    """Returns the batch that updates `scoped` to `whole`; None if nothing in the scope has changed.

    The caller prevents commits from being applied meanwhile.
    """
    documents = [document for uri in sorted(changes.documents) if (document := whole.documents.get(uri)) is not None]
    documents = [document for document in documents if wanted(document)]
    present = {document.uri for document in documents}
    removed = tuple(sorted(uri for uri in changes.documents if uri in scoped.documents and uri not in present))
    read_again = {passage for passage in changes.passages if _lives(scoped, passage)}
    if not documents and not removed and not read_again:
        return None
    refs = [ref for document in documents if document.state is State.INDEXED for ref in document.passages]
    passages = sorted({ref.passage for ref in refs} | read_again)
    extractions = list(_extractions(passages, scoped, whole))
    triples = {triple for ref in refs for triple in ref.triples or ()}
    triples.update(triple for extraction in extractions for triple in extraction.triples)
    new = [passage for passage in passages if passage not in scoped.passage_rows]
    return Batch(
        documents=tuple(documents),
        removed=removed,
        passages=tuple(_text(whole, passage) for passage in new),
        extractions=tuple(extractions),
        passage_vectors={passage: _vector(whole, "passage", whole.passage_rows[passage]) for passage in new},
        phrase_vectors=_phrase_vectors(triples, scoped, whole),
        triple_vectors=_triple_vectors(triples, scoped, whole),
    )


def _lives(index: LiveIndex, passage: str) -> bool:
    row = index.passage_rows.get(passage)
    return row is not None and bool(index.holders[row])


def _text(whole: LiveIndex, passage: str) -> PassageText:
    return whole.passages[whole.passage_rows[passage]]


def _vector(index: LiveIndex, kind: str, row: int) -> Vector:
    vectors = {"passage": index.passage_vectors, "phrase": index.phrase_vectors, "triple": index.triple_vectors}[kind]
    vector: Vector = vectors.view().rows([row])[0]
    return vector


def _extractions(passages: Iterable[str], scoped: LiveIndex, whole: LiveIndex) -> Iterable[Extraction]:
    """Yields the extractions of the passages that differ from those in `scoped`."""
    for passage in passages:
        row = whole.passage_rows[passage]
        found, state = whole.extracted[row], whole.extraction_states.get(row)
        if found is None or state is None:
            continue
        triples = {whole.triple(int(triple)) for triple in found}
        if (triples, state) != _known_extraction(scoped, passage):
            yield Extraction(
                passage,
                state.extractor,
                triples=tuple(sorted(triples)),
                status=state.status,
                attempts=state.attempts,
                error=state.error,
            )


def _known_extraction(scoped: LiveIndex, passage: str) -> tuple[Collection[Triple], object] | None:
    row = scoped.passage_rows.get(passage)
    found = scoped.extracted[row] if row is not None else None
    if row is None or found is None:
        return None
    return {scoped.triple(int(triple)) for triple in found}, scoped.extraction_states.get(row)


def _phrase_vectors(triples: Iterable[Triple], scoped: LiveIndex, whole: LiveIndex) -> dict[str, Vector]:
    phrases = {phrase for subject, _, object_ in triples for phrase in (subject, object_)}
    new = sorted(phrase for phrase in phrases if phrase not in scoped.phrase_rows)
    return {phrase: _vector(whole, "phrase", whole.phrase_rows[phrase]) for phrase in new}


def _triple_vectors(triples: Iterable[Triple], scoped: LiveIndex, whole: LiveIndex) -> dict[Triple, Vector]:
    found = {}
    for triple in sorted(filter(is_statement, triples)):
        subject, object_ = scoped.phrase_rows.get(triple[0]), scoped.phrase_rows.get(triple[2])
        if subject is None or object_ is None or (subject, triple[1], object_) not in scoped.triple_rows:
            row = whole.triple_rows[whole.phrase_rows[triple[0]], triple[1], whole.phrase_rows[triple[2]]]
            found[triple] = _vector(whole, "triple", row)
    return found


def restore_documents(scoped: LiveIndex, batch: Batch) -> None:
    """Sets the documents of `batch` as in the whole memory, with their original commit times."""
    scoped.documents.update((document.uri, document) for document in batch.documents)


def share_of_log(index: LiveIndex) -> float:
    """Returns the size of the matrices' logs relative to their bases. Queries pay for each log entry."""
    logged = sum(matrix.log_length for matrix in index.matrices.values())
    return logged / max(sum(matrix.base_entries for matrix in index.matrices.values()), 1)


def share_of_dead(index: LiveIndex) -> float:
    """Returns the share of rows that are not alive."""
    rows = len(index.passages) + len(index.phrases) + len(index.predicates)
    living = index.living_passages + index.living_phrases + index.living_triples
    return 1 - living / max(rows, 1)


def index_bytes(index: LiveIndex) -> int:
    """Estimates the bytes of an index in addition to the whole memory: vectors, sketches, edges, counts, Python objects."""
    edges = 16 * sum(matrix.base_entries + matrix.log_length for matrix in index.matrices.values())
    if isinstance(index, MaskedIndex):
        return index.own_bytes + edges
    rows = len(index.passages) + len(index.phrases) + len(index.predicates)
    vectors = sum(each.own_bytes for each in index.vectors.values())
    return index.crowding.bytes + 300 * rows + vectors + edges + 100 * len(index.phrases)
