"""Which extractors and readers made the stored data, and how long the rules need for what older rules have read."""

import time
from collections import Counter
from collections.abc import Callable

from daemon.contract.status import PassageShare, ReaderShare
from daemon.pipeline.work_items import container_uri
from store.store import Store
from store.types import State

RECOUNT_RATIO = 20
"""A count is used for this many times as long as it took, so that frequent commits cause little counting."""


class Provenance:
    """Counts by extractor and reader. May be used in any thread; concurrent counts give the same numbers."""

    def __init__(
        self, store: Store, extractor: str, at_once: int, is_older_version: Callable[[str], bool] = lambda _name: False
    ) -> None:
        """`extractor` processes `at_once` passages concurrently. `is_older_version` returns whether a name is of an earlier
        version of it."""
        self._store = store
        self._extractor = extractor
        self._at_once = at_once
        self._is_older_version = is_older_version
        self._commit = -1
        self._next_count = 0.0
        self.extractors: list[PassageShare] = []
        """Numbers of passages, largest first. `left_s` is set for earlier versions of the present extractor."""
        self.readers: list[ReaderShare] = []
        """Numbers of followed documents by the version of the reader that parsed them, largest first."""

    def count(self) -> None:
        """Updates the numbers, if there was a commit since the last count."""
        commit, began = self._store.snapshot().commit, time.monotonic()
        if commit == self._commit or began < self._next_count:
            return
        extractors = Counter(self._store.passages_by_extractor())
        self.extractors = [
            PassageShare(
                name=name, passages=number, left_s=self.left_s(number) if self._is_older_version(name) else None
            )
            for name, number in extractors.most_common()
            if number
        ]
        positions = self._store.positions
        read = [
            positions.get(container_uri(each.uri)) for each in self._store.documents() if each.state is State.INDEXED
        ]
        readers = Counter(
            f"reader/{position.get('reader', 0)}" for position in read if position and "inode" in position
        )
        self.readers = [ReaderShare(name=name, documents=number) for name, number in readers.most_common()]
        now = time.monotonic()
        self._commit, self._next_count = commit, now + RECOUNT_RATIO * (now - began)

    def left_s(self, passages: int) -> float:
        """Returns how long the extractor needs for this number of passages, at the mean speed of its earlier extractions.

        0 if it has processed none. Encoding new triples is not included.
        """
        ms = self._store.extraction_ms(lambda name: name == self._extractor or self._is_older_version(name))
        return round(passages * (ms or 0.0) / 1000 / self._at_once, 1)
