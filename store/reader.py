"""What a store holds, for everybody who asks: one question each, answered from memory (but `spent`, which
reads a table), and never waiting for a commit (but `pinned`, for the milliseconds in which one is taken over).

The image changes while it is asked, and another may take its place (`store.maintenance.rebuild`): each answer looks
at one image, and
at each of its containers in one step.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from store.document_snapshot import Pinned
from store.index.state import Image
from store.lance.tables import Tables
from store.log.commits import CommitLog, Costs
from store.log.extraction_costs import COSTS, costs_of, together
from store.log.plan import Missing, missing, unextracted
from store.maintenance.contents import Contents
from store.maintenance.retention import Purge
from store.snapshot import Snapshot
from store.types import Batch, Document, ExtractionState, Grown, PassageText, State, Triple


class Held:
    """The reading half of `store.store.Store`; may be called from any thread."""

    _image: Image
    _snapshot: Snapshot
    _changing: bool
    """While a commit is being taken over into the image."""
    _log: CommitLog
    _tables: Tables
    _purge: Purge | None
    """The purge that is under way."""

    def snapshot(self) -> Snapshot:
        """The memory as of the last commit."""
        return self._snapshot

    def pinned(self) -> Pinned:
        """The memory as of the last commit with the names of its documents, for a question that outlives that commit.

        Never waits for a commit but while one is taken over into the image (milliseconds).
        """
        while True:
            snapshot = self._snapshot
            if not self._changing:
                image = self._image
                found = Pinned(snapshot, image.documents.copy(), image.users.copy())
                # A change in between ends with another snapshot; one under way says so.
                if not self._changing and self._snapshot is snapshot:
                    return found
            time.sleep(0.001)

    @property
    def horizon(self) -> int:
        """The earliest commit that `at` can show."""
        return self._log.horizon

    def growth(self, most: int) -> list[Grown]:
        """What the memory held as of at most `most` of its commits that `at` can show, the last among them, in order."""
        times, counts = self._log.times.copy(), self._log.counts.copy()
        now = self._snapshot
        counts[now.commit] = (now.living_passages, now.living_phrases, now.living_triples)
        known = sorted(seq for seq in counts if self._log.horizon <= seq <= now.commit and seq in times)
        step = -(-len(known) // most) or 1
        return [Grown(seq, times[seq], *counts[seq]) for seq in reversed(known[::-1][::step])]

    @property
    def positions(self) -> Mapping[str, Any]:
        """Where each source stands as of the last commit."""
        return self._log.positions

    def documents(self) -> list[Document]:
        """Every document as of the last commit, by URI."""
        return sorted(self._image.documents.copy().values(), key=lambda document: document.uri)

    def document(self, uri: str) -> Document | None:
        return self._image.documents.get(uri)

    def states(self) -> dict[State, int]:
        """How many documents there are in each state."""
        return dict(Counter(document.state for document in self._image.documents.copy().values()))

    def users(self, passage: str) -> list[str]:
        """URIs of the documents that hold a passage, sorted."""
        image = self._image
        row = image.passage_rows.get(passage)
        return sorted(image.users[row]) if row is not None else []

    def extraction_state(self, passage: str) -> ExtractionState | None:
        """Who read a passage and what became of it, None when nobody has read it."""
        image = self._image
        row = image.passage_rows.get(passage)
        return image.extraction_states.get(row) if row is not None else None

    def extraction_states(self) -> dict[str, ExtractionState]:
        """The state of every passage that was read, living or not, by id."""
        image = self._image
        return {image.passages[row].id: state for row, state in image.extraction_states.copy().items()}

    def contents(self) -> Contents:
        """What is known of texts, living or not, as of the last commit. For who lets no commit come meanwhile."""
        return Contents(self._image)

    def extracted(self, passage: str) -> tuple[Triple, ...]:
        """The triples that an extractor found in a passage; none where it found none, or nobody read it."""
        image = self._image
        row = image.passage_rows.get(passage)
        rows = image.extracted[row] if row is not None else None
        return tuple(image.triple(int(triple)) for triple in rows) if rows is not None else ()

    def passages_by_extraction(self, wanted: Callable[[ExtractionState | None], bool]) -> list[str]:
        """Ids of living passages without triples of their documents' own whose state (None: nobody read them) is `wanted`."""
        image = self._image
        found = []
        for row in range(len(image.users)):
            users = image.users[row]
            if users and all(given is None for given in users.values()) and wanted(image.extraction_states.get(row)):
                found.append(image.passages[row].id)
        return found

    def passage(self, id: str) -> PassageText | None:
        """A passage's text, living or not."""
        image = self._image
        row = image.passage_rows.get(id)
        return image.passages[row] if row is not None else None

    def spent(self) -> Costs:
        """What extraction has cost over the life of the store, as of the last commit."""
        with self._tables.pinned():
            last = self._log.last
            # Of that commit's version: while small files are merged, the newest holds their rows twice for a moment.
            table = self._tables.read("extractions", COSTS, last.versions["extractions"])
        return together(last.bygone, costs_of(table))

    def knows_passage(self, id: str) -> bool:
        """Whether the passage's text and vector are stored, living or not."""
        return id in self._image.passage_rows

    def unextracted(self, batch: Batch) -> list[PassageText]:
        """Which passages an extractor has to read before `batch` is complete."""
        self._reserve(batch)
        return unextracted(self._image, batch)

    def missing(self, batch: Batch) -> Missing:
        """Which texts have to be encoded before `batch` can be committed; its extractions must be in it."""
        self._reserve(batch)
        return missing(self._image, batch)

    def _reserve(self, batch: Batch) -> None:
        """First: a purge under way then leaves what `batch` finds known."""
        if (purge := self._purge) is not None:
            purge.reserve(batch)
