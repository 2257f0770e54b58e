"""Stores a model's uncommitted answers on disk, so that no call is paid for twice after `kill -9`."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from daemon.append_file import AppendFile
from memory.openie.llm.extractor import NamedEntities
from store.types import Extraction

ENTITIES = TypeAdapter(NamedEntities)
EXTRACTION = TypeAdapter(Extraction)


class ExtractionJournal:
    """The journal of one extractor's answers. Use on the event loop only. Each answer is one line, written on arrival."""

    def __init__(
        self,
        file: Path,
        extractor: str,
        clock: Callable[[], float] = time.monotonic,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`check` raises OSError if the file must not be replaced at present."""
        self._extractor = extractor
        self._entities: dict[str, NamedEntities] = {}
        self.extractions: dict[str, Extraction] = {}
        """Uncommitted extractions, including those of an earlier run."""
        self._file = AppendFile(file, self._take, self._entries, check, clock)

    def passages(self) -> set[str]:
        """Returns the ids of passages with an answer."""
        return {*self.extractions, *self._entities}

    def entities(self, passage: str) -> NamedEntities | None:
        return self._entities.get(passage)

    def found_entities(self, passage: str, entities: NamedEntities) -> None:
        self._entities[passage] = entities
        self._file.append(self._entry(passage, entities=entities))

    def found(self, extraction: Extraction) -> None:
        self.extractions[extraction.passage] = extraction
        self._file.append(self._entry(extraction.passage, extraction=extraction))

    def committed(self, passages: Iterable[str]) -> None:
        """Removes the answers about committed passages."""
        for passage in passages:
            self.extractions.pop(passage, None)
            self._entities.pop(passage, None)
        self._file.trim()

    def drop(self, unwanted: Callable[[str], bool]) -> None:
        """Removes the answers about passages for which `unwanted` is true."""
        self.committed([passage for passage in self.passages() if unwanted(passage)])

    def close(self) -> None:
        self._file.close()

    def _take(self, entry: Any) -> None:
        if entry["extractor"] != self._extractor:
            return  # answer to another model or prompt: useless for this extractor
        if "entities" in entry:
            self._entities[entry["passage"]] = ENTITIES.validate_python(entry["entities"])
        else:
            extraction = EXTRACTION.validate_python(entry["extraction"])
            self.extractions[extraction.passage] = extraction

    def _entries(self) -> Iterator[dict[str, Any]]:
        for passage, entities in self._entities.items():
            yield self._entry(passage, entities=entities)
        for passage, extraction in self.extractions.items():
            yield self._entry(passage, extraction=extraction)

    def _entry(self, passage: str, **answer: Any) -> dict[str, Any]:
        answers = {name: asdict(value) for name, value in answer.items()}
        return {"passage": passage, "extractor": self._extractor, **answers}
