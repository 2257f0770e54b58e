"""The interface of a source of documents (`Source`), and the declaration of a kind of source (`SourceKind`)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from daemon.config_types.values import Section
from daemon.contract.status import SourceStatus

if TYPE_CHECKING:  # not needed by the configuration, which imports this module
    from consumers.folder import HardLinks
    from consumers.splitting import SplitSettings
    from daemon.contract.finding import Finding
    from daemon.parser_pool.pool import ParserPool
    from daemon.pipeline.ownership import Claim
    from daemon.pipeline.pipeline import Pipeline
    from store.store import Store

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True)
class SourceLabels:
    """The labels of a source's documents: `labels`, and labels in the documents' metadata if `from_documents`."""

    labels: tuple[str, ...] = ()
    from_documents: bool = True


LabelsBySource = tuple[tuple[str, SourceLabels], ...]
"""The name and labels of each source, sorted by name."""


class Source(ABC):
    """One configured source, from `start` to `close`. Create and call on the event loop, except `rescan`."""

    kind: ClassVar[str]
    """Name of the source's table in the configuration, also shown in `status`."""
    name: str
    """Name in `status`, also the `source` of the source's documents."""
    topics: Sequence[str] = ()
    """Topics that the source follows; a query may require positions of these (`after`)."""
    redelivers: ClassVar[bool] = False
    """Whether the source delivers a document again after the document was removed from the memory."""

    @abstractmethod
    def start(self) -> None:
        """Begins to deliver documents to the pipeline; returns at once."""

    async def stop(self) -> None:  # noqa: B027 - most sources have nothing to stop
        """Stops the parts that must stop while the pipeline still runs."""

    async def close(self) -> None:  # noqa: B027
        """Releases the remaining parts, after the pipeline has stopped and its last commit."""

    def rescan(self) -> None:  # noqa: B027
        """Starts a scan for changes that caused no event; returns at once. `[schedule] rescan` calls `rescan` in a thread."""

    def confirm(self) -> int:
        """Confirms pending removals; returns the number of their documents (0 if none are pending).

        Removals are pending if most of the source's documents disappeared at once.
        """
        return 0

    @abstractmethod
    def status(self, pending: int) -> SourceStatus:
        """Returns the source's status. `pending` is the number of the source's documents that are not committed."""

    @abstractmethod
    async def delivered(self) -> None:
        """Returns once the pipeline has received everything that the source contains now; for `hippoctl wait`."""

    def pending_note(self) -> str | None:
        """Returns a clause for an answer's note about content that the pipeline has not received yet, or None.

        Called on the event loop for every query.
        """
        return None

    def usage(self) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Returns the (items, bytes) that were fetched but not committed, and their limits, for `/metrics`; None without
        limits."""
        return None


class SourceParts:
    """The parts of the daemon that sources need (`daemon.app.open_memory.Memory`)."""

    store: "Store"
    pipeline: "Pipeline"
    pool: "ParserPool"
    split: "SplitSettings"
    hard_links: "dict[object, HardLinks]"
    """The names of files with several hard links, by labels: folders with the same labels share them."""


@dataclass(frozen=True, slots=True)
class SourceKind(Generic[S]):
    """The declaration of a kind of source, for configuration, daemon, doctor, API and documentation.

    Importing a declaration must be cheap, so `make` and `inspect` import modules when they are called.
    """

    table: str
    """Name of the table `[[table]]` in the configuration; also `kind` in `status`."""
    section: type[S]
    """Model of the table."""
    status: type[SourceStatus]
    """Model of the source's entry in `status`."""
    make: Callable[[S, SourceParts], Source]
    conflicts: Callable[[Sequence[S], Mapping[str, Path]], list[str]]
    """Returns a sentence, beginning with a key, for each conflict among these tables, or with the paths (by key) that hippod
    itself writes."""
    claims: "Callable[[S], Iterator[Claim]]"
    """Returns the claims for the documents that a table's source owns."""
    inspect: "Callable[[Sequence[S]], Iterator[Finding]]"
    """Checks these tables for `hippoctl doctor`; needs no daemon."""
