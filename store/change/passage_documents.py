"""The documents that contain each passage after a batch was committed."""

from store.index.effective_triples import UpstreamTriples, upstream_triples
from store.index.live_index import LiveIndex
from store.types import Batch, Document, State


def holders_after(index: LiveIndex, batch: Batch) -> dict[str, dict[str, UpstreamTriples]]:
    """Returns, by id of each passage that the batch touches, the documents that contain it afterwards, with their triples."""
    found: dict[str, dict[str, UpstreamTriples]] = {}

    def holders(passage: str) -> dict[str, UpstreamTriples]:
        if passage not in found:
            row = index.passage_rows.get(passage)
            found[passage] = dict(index.holders[row]) if row is not None else {}
        return found[passage]

    last: dict[str, Document] = {document.uri: document for document in batch.documents}
    for uri in [*last, *batch.removed]:
        old = index.documents.get(uri)
        for ref in old.passages if old else ():
            holders(ref.passage).pop(uri, None)
    for uri, document in last.items():
        if document.state is State.INDEXED:
            for passage, triples in upstream_triples(document).items():
                holders(passage)[uri] = triples
    return found
