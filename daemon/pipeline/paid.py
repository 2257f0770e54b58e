"""What a model was paid for and is not committed yet, on disk: `kill -9` costs no call twice.

One line for each answer, written the moment it is there. A process's death does not lose what was written; power loss may
cost the last seconds' calls once more.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import structlog

from memory.openie.llm import Entities
from store.types import Extraction

REWRITE_BYTES = 4 * 1024 * 1024

log = structlog.get_logger()


class Paid:
    """A journal of one extractor's answers. On the event loop."""

    def __init__(self, file: Path, extractor: str) -> None:
        self._file = file
        self._extractor = extractor
        self._entities: dict[str, Entities] = {}
        self.extractions: dict[str, Extraction] = {}
        """Those that were not committed when the process ended, and those that have come since."""
        for entry in _lines(file):
            self._take(entry)
        self._out = file.open("a", encoding="utf-8")
        self._rewrite()

    def entities(self, passage: str) -> Entities | None:
        return self._entities.get(passage)

    def found_entities(self, passage: str, entities: Entities) -> None:
        self._entities[passage] = entities
        self._write({"passage": passage, "extractor": self._extractor, "entities": asdict(entities)})

    def found(self, extraction: Extraction) -> None:
        self.extractions[extraction.passage] = extraction
        self._write({"passage": extraction.passage, "extractor": self._extractor, "extraction": asdict(extraction)})

    def committed(self, passages: Iterable[str]) -> None:
        """What the store holds need not be kept here."""
        for passage in passages:
            self.extractions.pop(passage, None)
            self._entities.pop(passage, None)
        if self._out.tell() > REWRITE_BYTES or not (self.extractions or self._entities):
            self._rewrite()

    def drop(self, unwanted: Callable[[str], bool]) -> None:
        """Forgets passages that nobody needs the answer for any more."""
        self.committed([passage for passage in {*self.extractions, *self._entities} if unwanted(passage)])

    def close(self) -> None:
        self._out.close()

    def _take(self, entry: Any) -> None:
        try:
            if entry["extractor"] != self._extractor:
                return  # another model's or prompt's: paid for, and of no use to this one
            if "entities" in entry:
                found = entry["entities"]
                self._entities[entry["passage"]] = Entities(**{**found, "names": tuple(found["names"])})
            else:
                found = entry["extraction"]
                triples = tuple((s, p, o) for s, p, o in found["triples"])
                kept = Extraction(**{**found, "entities": tuple(found["entities"]), "triples": triples})
                self.extractions[kept.passage] = kept
        except (KeyError, TypeError, ValueError) as error:
            log.warning("journal_line_skipped", file=str(self._file), error=error)

    def _write(self, entry: dict[str, Any]) -> None:
        self._out.write(json.dumps(entry) + "\n")
        self._out.flush()

    def _rewrite(self) -> None:
        """Only what is open; atomically, as the journal is all there is."""
        self._out.close()
        part = self._file.with_suffix(".part")
        with part.open("w", encoding="utf-8") as out:
            for passage, entities in self._entities.items():
                entry = {"passage": passage, "extractor": self._extractor, "entities": asdict(entities)}
                out.write(json.dumps(entry) + "\n")
            for passage, extraction in self.extractions.items():
                entry = {"passage": passage, "extractor": self._extractor, "extraction": asdict(extraction)}
                out.write(json.dumps(entry) + "\n")
        part.rename(self._file)
        self._out = self._file.open("a", encoding="utf-8")


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
