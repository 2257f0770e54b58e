"""The extractors and readers that made the stored data, and the time that the rules need to replace outdated data."""

from collections.abc import Callable, Collection

from daemon.contract.status import PassageShare, ReaderShare
from daemon.pipeline.commit.content_index import ContentCounts


class Provenance:
    """The numbers of passages by extractor, and of followed documents by reader. May be used in any thread."""

    def __init__(
        self,
        counts: ContentCounts,
        present_names: Collection[str],
        at_once: int,
        is_outdated: Callable[[str], bool] = lambda _name: False,
    ) -> None:
        """`present_names`: names under which the present extractor's extractions are stored. `at_once`: number of passages that
        the present extractor processes concurrently. `is_outdated` returns whether a name denotes the extractor in an earlier
        version or with other extras."""
        self._counts = counts
        self._present_names = present_names
        self._at_once = at_once
        self._is_outdated = is_outdated

    def extractors(self) -> list[PassageShare]:
        """Returns the numbers of passages by extractor, largest first. `left_s` is set if the present extractor may find other
        triples."""
        return [
            PassageShare(name=name, passages=number, left_s=self.left_s(number) if self._is_outdated(name) else None)
            for name, number in self._counts.extractors().most_common()
        ]

    def readers(self) -> list[ReaderShare]:
        """Returns the numbers of followed documents by the version of the reader that parsed them, largest first."""
        return [ReaderShare(name=name, documents=number) for name, number in self._counts.readers().most_common()]

    def left_s(self, passages: int) -> float:
        """Returns the seconds that the extractor needs for `passages`, at the mean speed of its earlier extractions.

        Returns 0 if the extractor has extracted no passage. Excludes the time for encoding new triples.
        """
        ms = self._counts.mean_ms(lambda name: name in self._present_names or self._is_outdated(name))
        return round(passages * (ms or 0.0) / 1000 / self._at_once, 1)
