"""Converts parsed documents to the store's documents and passage texts."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import overload

from consumers.failure_codes import FailureCode
from consumers.types import Link as ParsedLink
from consumers.types import ParsedDocument, Passage
from memory.phrase_normalisation import normalise_triple
from store.types import Document, Link, Omission, PassageRef, PassageText, State, Triple, passage_id

RETRY_DELAYS_S = (60.0, 600.0, 3600.0)
"""Delays before a failed document is retried automatically. Later retries need `hippoctl retry` or a change of the file."""

SLOW_RETRY_DELAYS_S = (600.0, 6 * 3600.0, 24 * 3600.0)
"""Delays for a document that exceeded the time limit: each retry takes the whole limit."""


def storable(text: str) -> str:
    """Replaces lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def passage_text(passage: Passage) -> PassageText:
    title, text = storable(passage.title), storable(passage.text)
    return PassageText(passage_id(title, text), title, text)


def to_store_document(
    read: ParsedDocument, source: str, attempts: int = 0, payload: str | None = None
) -> tuple[Document, list[PassageText]]:
    """Returns the document in the store's form, and the texts of its passages."""
    left_out = tuple(Omission(each.kind.value, each.count, storable(each.text)) for each in read.left_out)
    if read.error is not None:
        failed = failed_document(
            read.uri, source, read.error, read.code or FailureCode.OTHER, attempts, read.skipped, payload, read.title
        )
        return replace(failed, left_out=left_out), []
    texts: list[PassageText] = []
    refs: list[PassageRef] = []
    for passage in read.passages:
        texts.append(passage_text(passage))
        triples = normalised_triples(passage.triples)
        refs.append(PassageRef(texts[-1].id, dict(passage.location), triples, links=_links(passage.links)))
    document = Document(
        uri=read.uri,
        source=source,
        title=storable(read.title),
        state=State.INDEXED,
        modified_at=read.modified_at,
        metadata=dict(read.metadata),
        passages=tuple(refs),
        left_out=left_out,
    )
    return document, texts


def _links(links: Sequence[ParsedLink]) -> tuple[Link, ...]:
    return tuple(Link(storable(link.target), storable(link.heading), storable(link.text)) for link in links)


@overload
def normalised_triples(triples: Sequence[Triple], *, mentions: bool = False) -> tuple[Triple, ...]: ...


@overload
def normalised_triples(triples: Sequence[Triple] | None, *, mentions: bool = False) -> tuple[Triple, ...] | None: ...


def normalised_triples(triples: Sequence[Triple] | None, *, mentions: bool = False) -> tuple[Triple, ...] | None:
    """Returns the triples normalised, without duplicates and empty ones; None for None.

    `mentions` keeps mention edges, which hippod's extractors find but documents cannot state.
    """
    if triples is None:
        return None
    normalised = (normalise_triple(triple, mentions=mentions) for triple in triples)
    return tuple(dict.fromkeys(triple for triple in normalised if triple is not None))


def failed_document(
    uri: str,
    source: str,
    reason: str,
    code: FailureCode,
    attempts: int,
    skipped: bool,
    payload: str | None = None,
    title: str = "",
) -> Document:
    """Returns a document that could not be parsed (`failed`) or is excluded (`skipped`), with the time of its next retry."""
    delays = SLOW_RETRY_DELAYS_S if code is FailureCode.TIME else RETRY_DELAYS_S
    next_try = time.time() + delays[attempts] if not skipped and attempts < len(delays) else None
    return Document(
        uri=uri,
        source=source,
        title=storable(title),
        state=State.SKIPPED if skipped else State.FAILED,
        error=storable(reason),
        code=code.value,
        attempts=attempts + 1,
        next_try=next_try,
        payload=payload,
    )


def unchanged(old: Document | None, new: Document) -> bool:
    """Returns whether `new` differs from `old` in the time at most."""
    return old is not None and (
        old.state is new.state is State.INDEXED
        and old.passages == new.passages
        and old.title == new.title
        and old.metadata == new.metadata
        and old.left_out == new.left_out
        and old.source == new.source
    )
