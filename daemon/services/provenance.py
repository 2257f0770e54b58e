"""Which extractors and readers made the stored data, and how long the rules need for what older rules have read."""

from collections.abc import Callable

from daemon.contract.status import PassageShare, ReaderShare
from daemon.pipeline.commit.content_counts import ContentCounts


class Provenance:
    """Shares by extractor and reader. May be used in any thread."""

    def __init__(
        self,
        counts: ContentCounts,
        extractor: str,
        at_once: int,
        is_older_version: Callable[[str], bool] = lambda _name: False,
    ) -> None:
        """`extractor` processes `at_once` passages concurrently. `is_older_version` returns whether a name is of an earlier
        version of it."""
        self._counts = counts
        self._extractor = extractor
        self._at_once = at_once
        self._is_older_version = is_older_version

    def extractors(self) -> list[PassageShare]:
        """Returns the numbers of passages, largest first. `left_s` is set for earlier versions of the present extractor."""
        return [
            PassageShare(
                name=name, passages=number, left_s=self.left_s(number) if self._is_older_version(name) else None
            )
            for name, number in self._counts.extractors().most_common()
        ]

    def readers(self) -> list[ReaderShare]:
        """Returns the numbers of followed documents by the version of the reader that parsed them, largest first."""
        return [ReaderShare(name=name, documents=number) for name, number in self._counts.readers().most_common()]

    def left_s(self, passages: int) -> float:
        """Returns how long the extractor needs for this number of passages, at the mean speed of its earlier extractions.

        0 if it has processed none. Encoding new triples is not included.
        """
        ms = self._counts.mean_ms(lambda name: name == self._extractor or self._is_older_version(name))
        return round(passages * (ms or 0.0) / 1000 / self._at_once, 1)
