"""Processes a shard into a file of records, with the same parsing as hippod and hippod-worker."""

import asyncio
import json
import os
import platform
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyarrow import fs

from consumers.parsing import ParseSummary
from consumers.records.record import Record, SourcePosition
from consumers.records.writer import write_file
from consumers.types import ParsedDocument
from daemon.backfill.shards import BackfillError, InputFile, Shard
from daemon.config import Config
from daemon.fleet.record_maker import PositionedDocument, RecordMaker
from daemon.model_factory import Models, load_encoder, parser_pool
from daemon.parser_pool.pool import Turn
from daemon.pipeline.extraction.extractors import PassageExtractor, ServerExtractor
from memory.openie.registry import OPENIE_BACKENDS, BulkBackend, BulkExtractor
from memory.types import Encoder
from store.log.store_summary import encoder_of_store
from store.object_store import explained, file_system
from store.types import Extraction, PassageText


def record_settings(config: Config) -> dict[str, Any]:
    """Returns the settings on which records depend: extractor, encoder and passage sizes."""
    backend = OPENIE_BACKENDS[config.openie.backend]
    return {
        "extractor": " ".join(backend.present_names(config.llm.model or "")),
        "encoder": [config.encoder.backend, config.encoder.model],
        "passages": [config.passages.max_tokens, config.passages.min_tokens],
    }


class ShardReader:
    """Processes shards, one after the other, on its own event loop. Create one per process, because it loads the models."""

    def __init__(self, config: Config, out: str) -> None:
        """Raises EncoderUnavailable, BackfillError if the extractor's package is missing, or the exception of a bulk backend
        whose model cannot be loaded."""
        self._config = config
        self._out = out
        self._settings = record_settings(config)
        self._split = config.passages.split
        self._encoder = load_encoder(config, encoder_of_store(config.store.path))
        self._runner = asyncio.Runner()
        self._runner.run(self._open())

    async def _open(self) -> None:
        config = self._config
        self._pool = parser_pool(config.parsing)
        self._models = Models(config)
        extractor: PassageExtractor
        if isinstance(self._models.backend, BulkBackend):
            load = self._models.load_bulk_extractor()
            assert load is not None
            try:
                extractor = _BulkReading(self._models.extractor_name, load())
            except ImportError as error:  # the driver has the package; the nodes have separate environments
                await self._close()
                raise BackfillError(f"on {platform.node()}: {self._models.backend.install_text} ({error})") from error
        else:
            extractor = self._models.reading_extractor(self._pool)
            if isinstance(extractor, ServerExtractor):
                extractor.start()
        encoder: Encoder = self._encoder
        self._maker = RecordMaker(extractor, encoder)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Processes the shard in a row of Ray Data."""
        return {"records": self.read(Shard.from_json(row["shard"]))[1]}

    def close(self) -> None:
        self._runner.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        await self._pool.children.close()
        await self._models.close()

    def read(self, shard: Shard) -> tuple[str, int]:
        """Writes the shard's file unless it exists; returns its name and the number of records written now.

        Raises BackfillError if the input cannot be read or has changed since it was listed.
        """
        name = shard.file_name(self._settings)
        files, folder = file_system(self._out)
        target = f"{folder}/{name}"
        try:
            if files.get_file_info(target).type is fs.FileType.File:
                return name, 0
        except OSError as error:
            raise BackfillError(explained(error, self._out)) from error
        records = self._runner.run(self._records(shard))
        with tempfile.TemporaryDirectory(prefix="hippod-backfill-") as place:
            path = Path(place, name)
            write_file(path, records)
            _put(files, path, target, self._out)
        return name, len(records)

    async def _records(self, shard: Shard) -> list[Record]:
        found = [
            PositionedDocument(document, _position(file, number))
            async for file, number, document in self._documents(shard)
        ]
        return [_without_costs(record) for record in await self._maker.make(found)]

    async def _documents(self, shard: Shard) -> AsyncIterator[tuple[InputFile, int, ParsedDocument]]:
        """Yields (file, number, document). The numbers of a file's documents begin at `shard.first`."""
        for file in shard.files:
            number = shard.first
            stream = self._file_documents(file) if shard.kind == "files" else self._line_documents(shard, file)
            async for document in stream:
                yield file, number, replace(document, modified_at=file.modified_ns / 1e9)
                number += 1

    async def _file_documents(self, file: InputFile) -> AsyncIterator[ParsedDocument]:
        content = await asyncio.to_thread(_content, file, 0, file.size)
        with tempfile.NamedTemporaryFile(prefix="hippod-") as copy:
            copy.write(content)
            copy.flush()
            name = os.fsencode(file.path.rpartition("/")[2])
            stream = self._pool.parse(os.fsencode(copy.name), file.uri, self._split, Turn(recognise=True), name=name)
            async with aclosing(stream) as items:
                async for item in items:
                    if not isinstance(item, ParseSummary):
                        yield item

    async def _line_documents(self, shard: Shard, file: InputFile) -> AsyncIterator[ParsedDocument]:
        read = _content if shard.kind == "lines" else _rows
        content = await asyncio.to_thread(read, file, shard.begin, shard.end)
        text = content.decode("utf-8", "replace")
        stream = self._pool.parse_json_lines(text, f"{file.uri}#", self._split, shard.first)
        async with aclosing(stream) as items:
            async for item in items:
                yield item


class _BulkReading:
    """An in-process model as the extractor of a shard."""

    def __init__(self, name: str, bulk: BulkExtractor) -> None:
        self.name = name
        self._bulk = bulk

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        return await asyncio.to_thread(self._bulk.extract, passages)


def _position(file: InputFile, number: int) -> SourcePosition:
    """Returns a position: a later modification time of the file gives a newer position, whichever actor parsed the file."""
    modified_ms = file.modified_ns // 1_000_000
    return SourcePosition(f"backfill:{file.uri}@{modified_ms}", number, modified_ms)


def _without_costs(record: Record) -> Record:
    """Removes the durations of calls, which differ between runs, so that equal runs write equal files."""
    extractions = [None if each is None else replace(each, took_ms=0.0) for each in record.extractions]
    return replace(record, extractions=tuple(extractions))


def _content(file: InputFile, begin: int, end: int) -> bytes:
    try:
        files, _ = file_system(file.url)
        now = files.get_file_info(file.path)
        if (now.size, now.mtime_ns or 0) != (file.size, file.modified_ns):
            raise BackfillError(f"{file.uri} has changed since it was listed; start the backfill again")
        with files.open_input_file(file.path) as stream:
            stream.seek(begin)
            return bytes(stream.read(end - begin))
    except OSError as error:
        raise BackfillError(explained(error, file.uri)) from error


def _rows(file: InputFile, begin: int, end: int) -> bytes:
    """Returns rows of a Parquet file as JSON lines. Values without a JSON equivalent become text."""
    try:
        with file_system(file.url)[0].open_input_file(file.path) as stream:
            table = pq.ParquetFile(stream)
            selected: list[dict[str, Any]] = []
            place = 0
            for number in range(table.num_row_groups):
                size = table.metadata.row_group(number).num_rows
                if place < end and place + size > begin:
                    rows = table.read_row_group(number).slice(max(begin - place, 0), end - max(begin, place))
                    selected += rows.to_pylist()
                place += size
    except (OSError, ValueError) as error:
        raise BackfillError(f"{file.uri} cannot be read as Parquet: {error}") from error
    present = [{key: value for key, value in row.items() if value is not None} for row in selected]
    return "\n".join(json.dumps(row, default=str) for row in present).encode()


def _put(files: fs.FileSystem, path: Path, target: str, out: str) -> None:
    """Writes the file to the target, completely or not at all."""
    local = isinstance(files, fs.LocalFileSystem)
    part = f"{target}.{os.getpid()}.part" if local else target
    try:
        if local:
            Path(target).parent.mkdir(parents=True, exist_ok=True)
        with files.open_output_stream(part, compression=None) as stream:
            stream.write(path.read_bytes())
        if local:
            files.move(part, target)
    except OSError as error:
        raise BackfillError(explained(error, out)) from error
