"""Stores a model's uncommitted answers on disk, so that no call is paid for twice after `kill -9`.

Each answer is one line, written when it arrives. The lines survive the death of the process; a power failure may lose those
of the last seconds.

If the journal cannot be written (disk full, no file descriptors), extraction continues: the answers are used, and those that
are still uncommitted are written when writing works again.
"""

import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

import structlog
from pydantic import TypeAdapter

from daemon.pipeline.outage import Dependency
from memory.openie.llm.extractor import NamedEntities
from store.types import Extraction

REWRITE_BYTES = 4 * 1024 * 1024
REWRITE_MAX_PAUSE_S = 2.0
"""Maximum pause after a failed write before the journal is written again."""

ENTITIES = TypeAdapter(NamedEntities)
EXTRACTION = TypeAdapter(Extraction)

log = structlog.get_logger()


class ExtractionJournal:
    """The journal of one extractor's answers. Use on the event loop only."""

    def __init__(
        self,
        file: Path,
        extractor: str,
        clock: Callable[[], float] = time.monotonic,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`check` raises OSError if the file must not be replaced at present."""
        self._file = file
        self._check = check
        self._extractor = extractor
        self._clock = clock
        self._entities: dict[str, NamedEntities] = {}
        self.extractions: dict[str, Extraction] = {}
        """Extractions that were uncommitted when the process ended, and those that have arrived since."""
        self._out: TextIO | None = None
        """None if the file is incomplete or ends in a partial line; the next write then rewrites it completely."""
        self._disk = Dependency(REWRITE_MAX_PAUSE_S)
        self._next_try = float("-inf")
        for entry in _lines(file):
            self._take(entry)
        self._rewrite()

    def passages(self) -> set[str]:
        """Returns the passages with an answer."""
        return {*self.extractions, *self._entities}

    def entities(self, passage: str) -> NamedEntities | None:
        return self._entities.get(passage)

    def found_entities(self, passage: str, entities: NamedEntities) -> None:
        self._entities[passage] = entities
        self._write({"passage": passage, "extractor": self._extractor, "entities": asdict(entities)})

    def found(self, extraction: Extraction) -> None:
        self.extractions[extraction.passage] = extraction
        self._write({"passage": extraction.passage, "extractor": self._extractor, "extraction": asdict(extraction)})

    def committed(self, passages: Iterable[str]) -> None:
        """Removes the answers about committed passages."""
        for passage in passages:
            self.extractions.pop(passage, None)
            self._entities.pop(passage, None)
        if self._out is None or self._out.tell() > REWRITE_BYTES or not (self.extractions or self._entities):
            self._rewrite()

    def drop(self, unwanted: Callable[[str], bool]) -> None:
        """Removes the answers about passages that are `unwanted`."""
        self.committed([passage for passage in self.passages() if unwanted(passage)])

    def close(self) -> None:
        if self._out is None:
            self._next_try = float("-inf")  # try once more, whatever the pause
            self._rewrite()
        self._close_file()

    def _take(self, entry: Any) -> None:
        try:
            if entry["extractor"] != self._extractor:
                return  # answer to another model or prompt: useless for this extractor
            if "entities" in entry:
                self._entities[entry["passage"]] = ENTITIES.validate_python(entry["entities"])
            else:
                extraction = EXTRACTION.validate_python(entry["extraction"])
                self.extractions[extraction.passage] = extraction
        except (KeyError, TypeError, ValueError) as error:
            log.warning("journal_line_skipped", file=str(self._file), error=error)

    def _write(self, entry: dict[str, Any]) -> None:
        if self._out is None:
            self._rewrite()
            return
        try:
            self._out.write(json.dumps(entry) + "\n")
            self._out.flush()
        except OSError as error:
            self._close_file()
            self._note_trouble(error)

    def _rewrite(self) -> None:
        """Replaces the file atomically with the uncommitted answers. If that fails, the old file stays."""
        if self._clock() < self._next_try:
            return
        part = self._file.with_suffix(".part")
        out: TextIO | None = None
        try:
            self._check()
            out = part.open("w", encoding="utf-8")
            for passage, entities in self._entities.items():
                entry = {"passage": passage, "extractor": self._extractor, "entities": asdict(entities)}
                out.write(json.dumps(entry) + "\n")
            for passage, extraction in self.extractions.items():
                entry = {"passage": passage, "extractor": self._extractor, "extraction": asdict(extraction)}
                out.write(json.dumps(entry) + "\n")
            out.flush()
            part.rename(self._file)
        except OSError as error:
            with suppress(OSError):
                if out is not None:
                    out.close()
            with suppress(OSError):
                part.unlink(missing_ok=True)
            self._note_trouble(error)
            return
        self._disk.restored()
        # Later lines are written through the same handle, so no further file must be opened.
        self._close_file()
        self._out = out

    def _close_file(self) -> None:
        """Closes the file. Errors are ignored, as closing may again try to write buffered lines."""
        out, self._out = self._out, None
        if out is not None:
            with suppress(OSError):
                out.close()

    def _note_trouble(self, error: OSError) -> None:
        self._next_try = self._clock() + self._disk.failed("journal_not_written", error, file=str(self._file))


def _lines(file: Path) -> Iterable[Any]:
    """Yields the journal's entries. Skips lines that are not JSON, such as an incomplete last line."""
    if not file.exists():
        return
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:
                continue
