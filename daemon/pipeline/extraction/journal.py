"""A model's answers that are not committed yet, on disk: after `kill -9`, no call is paid for twice.

One line for each answer, written the moment it is there. A process's death does not lose what was written; power loss may
cost the last seconds' calls once more.

Where it cannot be written (a full disk, no file left to open) extraction goes on without it: an answer is used all the same,
and joins the journal once there is room, if it is not committed by then.
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

from memory.openie.llm.extractor import NamedEntities
from store.types import Extraction

REWRITE_BYTES = 4 * 1024 * 1024
REWRITE_PAUSE_S = 2.0
"""How long the journal is left alone once it could not be written."""
TROUBLE_LOG_PAUSE_S = 60.0
"""Trouble that goes on is logged this often."""

ENTITIES = TypeAdapter(NamedEntities)
EXTRACTION = TypeAdapter(Extraction)

log = structlog.get_logger()


class ExtractionJournal:
    """A journal of one extractor's answers. On the event loop."""

    def __init__(
        self,
        file: Path,
        extractor: str,
        clock: Callable[[], float] = time.monotonic,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`check` raises OSError if the file may not be replaced now."""
        self._file = file
        self._check = check
        self._extractor = extractor
        self._clock = clock
        self._entities: dict[str, NamedEntities] = {}
        self.extractions: dict[str, Extraction] = {}
        """Those that were not committed when the process ended, and those that have come since."""
        self._out: TextIO | None = None
        """None while the file lacks something, or ends in half a line: then it is written anew, as a whole."""
        self._next_try = self._next_log = float("-inf")
        for entry in _lines(file):
            self._take(entry)
        self._rewrite()

    def entities(self, passage: str) -> NamedEntities | None:
        return self._entities.get(passage)

    def found_entities(self, passage: str, entities: NamedEntities) -> None:
        self._entities[passage] = entities
        self._write({"passage": passage, "extractor": self._extractor, "entities": asdict(entities)})

    def found(self, extraction: Extraction) -> None:
        self.extractions[extraction.passage] = extraction
        self._write({"passage": extraction.passage, "extractor": self._extractor, "extraction": asdict(extraction)})

    def committed(self, passages: Iterable[str]) -> None:
        """Forgets the answers about passages that are committed."""
        for passage in passages:
            self.extractions.pop(passage, None)
            self._entities.pop(passage, None)
        if self._out is None or self._out.tell() > REWRITE_BYTES or not (self.extractions or self._entities):
            self._rewrite()

    def drop(self, unwanted: Callable[[str], bool]) -> None:
        """Forgets the answers about passages that are `unwanted`."""
        self.committed([passage for passage in {*self.extractions, *self._entities} if unwanted(passage)])

    def close(self) -> None:
        if self._out is None:
            self._next_try = float("-inf")  # the last chance
            self._rewrite()
        self._close_file()

    def _take(self, entry: Any) -> None:
        try:
            if entry["extractor"] != self._extractor:
                return  # another model's or prompt's: paid for, and of no use to this one
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
            self._log_trouble(error)

    def _rewrite(self) -> None:
        """Only what is open; atomically, as the journal is all there is. Where that fails, the file stays as it is."""
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
            self._log_trouble(error)
            return
        # What follows is written through the same handle, so that none has to be opened.
        self._close_file()
        self._out = out

    def _close_file(self) -> None:
        """Closes the file, which may try once more to write what could not be written."""
        out, self._out = self._out, None
        if out is not None:
            with suppress(OSError):
                out.close()

    def _log_trouble(self, error: OSError) -> None:
        now = self._clock()
        self._next_try = now + REWRITE_PAUSE_S
        if now >= self._next_log:
            self._next_log = now + TROUBLE_LOG_PAUSE_S
            log.warning("journal_not_written", file=str(self._file), error=error, retry_s=REWRITE_PAUSE_S)


def _lines(file: Path) -> Iterable[Any]:
    """The journal's entries; the last line may be half."""
    if not file.exists():
        return
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:
                continue
