"""The content of a record, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consumers.types import ParsedDocument, Triple


class RecordError(ValueError):
    """The data is not a record that this version can read. The message says why."""


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """Origin of a document's text: `offset` in `stream` (such as `kafka:articles/3`), and `time_ms` (milliseconds since
    1970)."""

    stream: str
    offset: int
    time_ms: int = 0

    def is_before(self, other: "SourcePosition") -> bool:
        """Whether this position is older. Positions in the same stream are compared by offset, others by time and then stream
        name."""
        if self.stream == other.stream:
            return self.offset < other.offset
        return (self.time_ms, self.stream) < (other.time_ms, other.stream)

    def to_json(self) -> dict[str, Any]:
        return {"stream": self.stream, "offset": self.offset, "time_ms": self.time_ms}

    @classmethod
    def from_json(cls, value: object) -> "SourcePosition":
        """Reads a position from JSON. Raises RecordError if the value is no position."""
        if isinstance(value, Mapping):
            stream, offset, time_ms = value.get("stream"), value.get("offset"), value.get("time_ms", 0)
            if isinstance(stream, str) and type(offset) is int and type(time_ms) is int:
                return cls(stream, offset, time_ms)
        raise RecordError('a source position must be {"stream": text, "offset": whole number, "time_ms": whole number}')


@dataclass(frozen=True, slots=True)
class PassageExtraction:
    """The extraction of one passage. `error` is set instead if the extractor failed."""

    extractor: str
    entities: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    took_ms: float = 0.0
    error: str | None = None


def _no_rows() -> NDArray[np.float32]:
    return np.empty((0, 0), np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class RecordVectors:
    """Vectors of one encoder. Each array has shape (texts, dim); rows are L2-normalised or zero.

    `passages` has one row for each of the document's passages, or no rows. Phrase vectors are transferred in float32,
    because synonym edges depend on them; the other vectors in float16.
    """

    encoder: str
    dim: int
    passages: NDArray[np.float32] = field(default_factory=_no_rows)
    phrases: tuple[str, ...] = ()
    phrase_vectors: NDArray[np.float32] = field(default_factory=_no_rows)
    triples: tuple[Triple, ...] = ()
    triple_vectors: NDArray[np.float32] = field(default_factory=_no_rows)


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A document that was parsed elsewhere. `document.deleted`: the document is to be removed.

    `extractions` has one entry per passage. An entry is None if the document itself contains the passage's triples, or if the
    importing hippod is to extract them.
    """

    document: ParsedDocument
    extractions: tuple[PassageExtraction | None, ...] = ()
    position: SourcePosition | None = None
    vectors: RecordVectors | None = None

    @property
    def uri(self) -> str:
        return self.document.uri

    @property
    def is_read(self) -> bool:
        """Whether no passage needs extraction. A passage on which the record's extractor failed needs extraction."""
        pairs = zip(self.document.passages, self.extractions, strict=True)
        return all(
            passage.triples is not None or (extraction is not None and extraction.error is None)
            for passage, extraction in pairs
        )
