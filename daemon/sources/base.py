"""The interface of a source of documents (`Source`), and the declaration of a kind of source (`SourceKind`)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from daemon.config_types.values import Section
from daemon.contract.status import SourceStatus

if TYPE_CHECKING:  # the configuration imports this module, and needs none of these types
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
    """The labels of a source's documents: `labels`, and if `from_documents`, those in the documents' metadata."""

    labels: tuple[str, ...] = ()
    from_documents: bool = True


LabelsBySource = tuple[tuple[str, SourceLabels], ...]
"""The name and labels of each source, sorted by name."""


class Source(ABC):
    """One configured source, from `start` to `close`. Created and called on the event loop, except `rescan`."""

    kind: ClassVar[str]
    """Name of its table in the configuration, shown in `status`."""
    name: str
    """Its name in `status`, and the `source` of its documents."""
    topics: Sequence[str] = ()
    """Topics that it follows and whose positions a query may require (`after`)."""
    redelivers: ClassVar[bool] = False
    """Whether it delivers a document again that was removed from the memory."""

    @abstractmethod
    def start(self) -> None:
        """Begins to deliver documents to the pipeline, and returns at once."""

    async def stop(self) -> None:  # noqa: B027 - most have nothing to do
        """Stops everything that must stop while the pipeline still runs."""

    async def close(self) -> None:  # noqa: B027
        """Releases the rest, after the pipeline has stopped and nothing more is committed."""

    def rescan(self) -> None:  # noqa: B027
        """Starts a scan for changes that caused no event, and returns at once. Called by `[schedule] rescan` in its thread."""

    def confirm(self) -> int:
        """Confirms pending removals; returns the number of their documents, 0 if nothing is pending.

        Removals are pending if most of the source's documents were missing at once.
        """
        return 0

    @abstractmethod
    def status(self, pending: int) -> SourceStatus:
        """Returns the source's status. `pending` is the number of its documents that are not committed."""

    @abstractmethod
    async def delivered(self) -> None:
        """Returns when everything that the source contains now was given to the pipeline; for `hippoctl wait`."""

    def unread(self) -> str | None:
        """Returns a clause, for the note of an answer, about content that is not in the pipeline yet; None if there is none.

        Called on the event loop for every query.
        """
        return None

    def usage(self) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Returns the items and bytes that were fetched and are not committed, and their limits, for `/metrics`; None if the
        source has no limits."""
        return None


@dataclass(frozen=True, slots=True)
class SourceParts:
    """The parts of the daemon that sources need."""

    store: "Store"
    pipeline: "Pipeline"
    pool: "ParserPool"
    split: "SplitSettings"
    hard_links: "dict[object, HardLinks]" = field(default_factory=dict)
    """The names of files with several hard links, shared by folders with the same labels. The key is these labels."""


@dataclass(frozen=True, slots=True)
class SourceKind(Generic[S]):
    """The declaration of a kind of source, used by configuration, daemon, doctor, API and documentation.

    Importing it must be cheap: `make` and `inspect` import what they need when they are called.
    """

    table: str
    """Name of the table `[[table]]` in the configuration, and the `kind` in `status`."""
    section: type[S]
    """Model of the table."""
    status: type[SourceStatus]
    """Model of the source's entry in `status`."""
    make: Callable[[S, SourceParts], Source]
    conflicts: Callable[[Sequence[S], Mapping[str, Path]], list[str]]
    """Returns conflicts among these tables, or with the paths that hippod itself writes (by their keys): one sentence each,
    with the key first."""
    claims: "Callable[[S], Iterator[Claim]]"
    """Returns the claims to the documents that a table's source owns."""
    inspect: "Callable[[Sequence[S]], Iterator[Finding]]"
    """Checks these tables for `hippoctl doctor`, without a daemon."""
