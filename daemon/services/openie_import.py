"""Turns a HippoRAG OpenIE results file into documents, in batches: one document per passage."""

import json
import re
from array import array
from pathlib import Path

import numpy as np

from daemon.pipeline.work_items import AddedDocument
from daemon.services.documents.added_documents import imported_uri
from memory.openie.hipporag_file import read_hipporag_file

IMPORT_BATCH_PASSAGES = 500
"""Maximum imported passages in a file of the inbox."""

IMPORT_BATCH_BYTES = 4 << 20
"""Maximum bytes of imported passages in a file of the inbox, so that concurrent imports need little memory."""

_PASSAGE_KEY = re.compile(rb'"passage"\s*:')


def count_passages(path: Path) -> int:
    """Returns the approximate number of passages in a file, for progress; does not parse the file."""
    count, tail = 0, b""
    with path.open("rb") as file:
        while chunk := file.read(IMPORT_BATCH_BYTES):
            found = len(_PASSAGE_KEY.findall(tail + chunk))
            count += found - len(_PASSAGE_KEY.findall(tail))
            tail = chunk[-32:]
    return count


class OpenieImport:
    """Reads a file in batches of documents, one document per passage. Keeps 8 bytes in memory for each passage read."""

    def __init__(self, path: Path, max_documents: int, max_bytes: int) -> None:
        """Reads the whole file once, to check it. Raises HippoRAGFormatError if the format is wrong.

        `max_documents` and `max_bytes` limit a batch.
        """
        self._recorded = read_hipporag_file(path)
        self._max_documents = min(IMPORT_BATCH_PASSAGES, max_documents)
        self._max_bytes = min(IMPORT_BATCH_BYTES, max_bytes)
        self._next: AddedDocument | None = None
        self._digests = array("Q")
        self.triples = 0
        """Number of triples read so far."""
        self.skipped = 0
        """Number of malformed triples and passages so far."""

    def documents(self) -> list[AddedDocument]:
        """Returns the next batch, with distinct URIs; [] at the end of the file."""
        found: dict[str, AddedDocument] = {}
        size = 0
        while len(found) < self._max_documents:
            document = self._next or self._document()
            self._next = None
            if document is None:
                break
            size += len(document.text)
            if found and size > self._max_bytes:
                self._next = document
                break
            found[document.uri] = document
        return list(found.values())

    def passages(self) -> int:
        """Returns the number of distinct passages read so far."""
        return len(np.unique(np.asarray(self._digests)))

    def _document(self) -> AddedDocument | None:
        for passage in self._recorded:
            if passage.problem is not None:
                self.skipped += 1
                continue
            self.skipped += passage.skipped
            self.triples += len(passage.triples)
            uri = imported_uri(f"{passage.title}\n{passage.text}")
            self._digests.append(int(uri.rpartition("/")[2], 16))
            text = json.dumps({"title": passage.title, "text": passage.text, "triples": passage.triples})
            return AddedDocument(uri, text, whole=True)
        return None
