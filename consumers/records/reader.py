"""Reads records from Arrow data. Every fault in the data becomes a `RecordError` that describes it.

Arrow's full validation runs before a value is used. Untrusted bytes are also first read in a child process
(`daemon.parser_pool`), so that a fault in the library only crashes that process.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from consumers.failure_codes import FailureCode
from consumers.omissions import KIND_OF, TEXT_CHARS, Omission, OmissionKind
from consumers.part_uri import NOT_IN_URI
from consumers.records.record import PassageExtraction, Record, RecordError, RecordVectors, SourcePosition
from consumers.records.schema import FAILED, REMOVED, REQUIRED, SCHEMA, SKIPPED, STATES, VERSION, VERSION_KEY
from consumers.records.writer import ROW_GROUP_RECORDS
from consumers.types import Link, ParsedDocument, Passage, Triple

MAX_URI_CHARS = 8192
MAX_OMISSION_CHARS = 2 * TEXT_CHARS
PARQUET_MAGIC = b"PAR1"
_INVALID = re.compile(f"[{NOT_IN_URI}]")


def from_message(value: bytes) -> Record:
    """Reads the record of a Kafka message: an Arrow IPC stream with one row. Raises RecordError."""
    try:
        with pa.ipc.open_stream(value) as stream:
            _check_version(stream.schema)
            batches = [batch for batch in stream if batch.num_rows]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(error, "it is not an Arrow IPC stream") from error
    if sum(batch.num_rows for batch in batches) != 1:
        raise RecordError("a message must contain one record, a row of an Arrow IPC stream")
    return _record(_columns(batches[0]), 0)


def read_file(path: Path) -> Iterator[Record | RecordError]:
    """Yields the records of a Parquet file, reading one batch at a time. Yields the error of an invalid row instead of
    raising it, so that other rows are read.

    Raises RecordError if the file is not a Parquet file of records.
    """
    try:
        file = pq.ParquetFile(path, memory_map=True)
        _check_version(file.schema_arrow)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(error, "it is not a Parquet file of records") from error
    with file:
        rest = file.iter_batches(ROW_GROUP_RECORDS)
        while True:
            try:
                batch = next(rest, None)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise _unreadable(error, "the file is damaged") from error
            if batch is None:
                return
            yield from _each(batch)


def _each(batch: pa.RecordBatch) -> Iterator[Record | RecordError]:
    columns = _columns(batch)
    for row in range(batch.num_rows):
        try:
            yield _record(columns, row)
        except RecordError as error:
            yield error


def _unreadable(error: Exception, what: str) -> RecordError:
    return error if isinstance(error, RecordError) else RecordError(f"{what}: {' '.join(str(error).split())[:300]}")


def _check_version(schema: pa.Schema) -> None:
    version = (schema.metadata or {}).get(VERSION_KEY.encode(), b"").decode("ascii", "replace")
    if not version.isdigit():
        raise RecordError(f'its schema has no "{VERSION_KEY}" in the metadata, so it contains no records')
    if int(version) > VERSION:
        raise RecordError(f"it has version {version} of the records' schema, and this hippod reads up to {VERSION}")
    for name in REQUIRED:
        if name not in schema.names:
            raise RecordError(f'it has no column "{name}"')


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """Returns the columns of `SCHEMA`, cast to its types. Missing columns are filled with nulls."""
    columns: dict[str, pa.Array] = {}
    try:
        batch.validate(full=True)
        for field in SCHEMA:
            if field.name in batch.schema.names:
                column = batch.column(field.name)
                columns[field.name] = column if column.type == field.type else column.cast(field.type)
            else:
                columns[field.name] = pa.nulls(batch.num_rows, field.type)
    except (pa.ArrowException, ValueError) as error:
        raise _unreadable(error, "its columns are not those of records") from error
    return columns


def _record(columns: Mapping[str, pa.Array], row: int) -> Record:
    value = {name: column[row].as_py() for name, column in columns.items() if name != "vectors"}
    uri, state = value["uri"], value["state"]
    if not uri or len(uri) > MAX_URI_CHARS or _INVALID.search(uri):
        raise RecordError(
            f'"uri" must be a URI of at most {MAX_URI_CHARS} characters, without spaces and control characters'
        )
    if state not in STATES:
        raise RecordError(f'"state" must be one of {", ".join(STATES)}')
    position = None if value["position"] is None else SourcePosition.from_json(value["position"])
    if state == REMOVED:
        return Record(ParsedDocument(uri, deleted=True), (), position)
    if value["modified_at"] is not None and not math.isfinite(value["modified_at"]):
        raise RecordError('"modified_at" must be a finite number')
    metadata = _object(value["metadata"], "metadata")
    if value["labels"] is not None:
        metadata["labels"] = _strings(value["labels"], "labels")
    if state in (FAILED, SKIPPED):
        code = value["code"] if value["code"] in set(FailureCode) else FailureCode.OTHER
        failed = ParsedDocument(
            uri,
            value["title"] or "",
            metadata=metadata,
            modified_at=value["modified_at"],
            error=value["error"] or "no reason was given",
            skipped=state == SKIPPED,
            code=FailureCode(code),
        )
        return Record(failed, (), position)
    passages, extractions = _passages(value["passages"] or [], _links(value["links"] or []))
    document = ParsedDocument(
        uri, value["title"] or "", passages, metadata, value["modified_at"], left_out=_left_out(value["left_out"] or [])
    )
    vectors = columns["vectors"][row]
    return Record(document, extractions, position, _vectors(vectors, len(passages)) if vectors.is_valid else None)


def _links(values: Sequence[Any]) -> dict[int, list[Link]]:
    """Returns the links by number of their passage."""
    found: dict[int, list[Link]] = {}
    for value in values:
        if value is None or value["passage"] is None or not (value["target"] or value["heading"]):
            raise RecordError("a link must have a target or a heading, and the number of its passage")
        link = Link(value["target"] or "", value["heading"] or "", value["text"] or "")
        found.setdefault(value["passage"], []).append(link)
    return found


def _passages(
    values: Sequence[Any], links: Mapping[int, Sequence[Link]]
) -> tuple[tuple[Passage, ...], tuple[PassageExtraction | None, ...]]:
    passages, extractions = [], []
    if outside := [number for number in links if not 0 <= number < len(values)]:
        raise RecordError(f"a link names the passage {outside[0]}, and there are {len(values)}")
    for number, value in enumerate(values):
        if value is None or (not value["text"] and not value["title"]):
            raise RecordError("a passage has neither title nor text")
        triples = None if value["triples"] is None else _triples(value["triples"])
        location = _object(value["location"], "location")
        if any(isinstance(part, dict | list) for part in location.values()):
            raise RecordError('"location" must be an object of numbers and texts')
        of_passage = tuple(links.get(number, ()))
        passages.append(Passage(value["title"] or "", value["text"] or "", location, triples, of_passage))
        extractions.append(None if value["extraction"] is None else _extraction(value["extraction"]))
    return tuple(passages), tuple(extractions)


def _left_out(values: Sequence[Any]) -> tuple[Omission, ...]:
    """Returns the account of omissions. A kind that this version does not know becomes `other`; the text is kept."""
    found = []
    for value in values:
        count, text = (None, None) if value is None else (value["count"], value["text"])
        if count is None or count < 1 or not text or len(text) > MAX_OMISSION_CHARS:
            raise RecordError(
                f'each entry of "left_out" must have a "count" of 1 or more and a "text" of at most {MAX_OMISSION_CHARS} '
                "characters"
            )
        found.append(Omission(KIND_OF.get(value["kind"], OmissionKind.OTHER), count, text))
    return tuple(found)


def _extraction(value: Mapping[str, Any]) -> PassageExtraction:
    if not value["extractor"]:
        raise RecordError("an extraction does not name its extractor")
    return PassageExtraction(
        value["extractor"],
        tuple(_strings(value["entities"] or [], "entities")),
        _triples(value["triples"] or []),
        value["prompt_tokens"] or 0,
        value["completion_tokens"] or 0,
        value["took_ms"] or 0.0,
        value["error"],
    )


def _vectors(value: pa.StructScalar, passages: int) -> RecordVectors:
    encoder, dim = value["encoder"].as_py(), value["dim"].as_py()
    if not encoder or not dim or dim < 0:
        raise RecordError('"vectors" must name their encoder and its dimension')
    phrases = tuple(_strings(value["phrases"].as_py() or [], "phrases"))
    triples = _triples(value["triples"].as_py() or [])
    of_passages = _matrix(value["passages"], dim, passages, "passages", may_be_absent=True)
    return RecordVectors(
        encoder,
        dim,
        of_passages,
        phrases,
        _matrix(value["phrase_vectors"], dim, len(phrases), "phrases"),
        triples,
        _matrix(value["triple_vectors"], dim, len(triples), "triples"),
    )


def _matrix(value: pa.ListScalar, dim: int, rows: int, what: str, may_be_absent: bool = False) -> NDArray[np.float32]:
    """Returns vectors of shape (rows, dim) with rows of length one or zero. Normalises float16 rows again, because rounding to
    float16 changes their length."""
    flat = value.values.to_numpy(zero_copy_only=False) if value.is_valid else np.empty(0, np.float32)
    if may_be_absent and not flat.size:
        return np.empty((0, dim), np.float32)
    if flat.size != rows * dim:
        raise RecordError(f"the vectors of its {rows} {what} should be {rows * dim} numbers, and are {flat.size}")
    halves = flat.dtype == np.float16
    vectors: NDArray[np.float32] = flat.astype(np.float32).reshape(rows, dim)
    lengths = np.linalg.norm(vectors, axis=1)
    # NaN fails every comparison, so the condition tests for valid lengths.
    if not np.all((np.abs(lengths - 1) < 1e-2) | (lengths == 0)):
        raise RecordError(f"the vectors of its {what} are not normalised")
    if halves:
        vectors /= np.where(lengths == 0, 1, lengths)[:, None]
    return vectors


def _triples(values: Sequence[Any]) -> tuple[Triple, ...]:
    if any(value is None or None in value for value in values):
        raise RecordError("a triple must be three texts")
    return tuple((subject, predicate, object_) for subject, predicate, object_ in values)


def _strings(values: Sequence[Any], what: str) -> list[str]:
    if None in values:
        raise RecordError(f'"{what}" must be texts')
    return list(values)


def _object(text: str | None, what: str) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(f'"{what}" must be a JSON object: {error}') from error
    if not isinstance(value, dict):
        raise RecordError(f'"{what}" must be a JSON object')
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
