"""What a source of documents is to the daemon (`Source`), and the declaration of one kind of them (`SourceKind`)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from daemon.config_types.section import Section
from daemon.contract.status import SourceStatus

if TYPE_CHECKING:  # the configuration imports this file, and needs none of these
    from consumers.folder import HardLinks
    from consumers.splitting import SplitSettings
    from daemon.contract.finding import Finding
    from daemon.pipeline.ownership import Claim
    from daemon.pipeline.pipeline import Pipeline
    from daemon.workers.pool import WorkerPool
    from store.store import Store

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True)
class SourceLabels:
    """The labels of a source's documents: `labels`, and the documents' own if `from_documents`."""

    labels: tuple[str, ...] = ()
    from_documents: bool = True


LabelsBySource = tuple[tuple[str, SourceLabels], ...]
"""(name of a source, its labels), by name."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How much waits, and how much may: items, and bytes."""

    items: int
    bytes: int
    max_items: int
    max_bytes: int


class Source(ABC):
    """One configured source, from `start` to `close`. Made and called on the event loop."""

    kind: ClassVar[str]
    """The table of the configuration; `status` shows it."""
    name: str
    """What `status` calls it, and the `source` of its documents."""
    topics: Sequence[str] = ()
    """The streams it follows whose positions a question may name (`after`)."""
    redelivers: ClassVar[bool] = False
    """Whether a document that is removed from the memory comes back, as the source still has it."""

    @abstractmethod
    def start(self) -> None:
        """Begins to deliver documents to the pipeline; does not wait."""

    async def stop(self) -> None:  # noqa: B027 - most have nothing to do
        """Ends what must end while the pipeline still runs."""

    async def close(self) -> None:  # noqa: B027
        """Ends the rest: the pipeline has stopped, and nothing is committed any more."""

    def rescan(self) -> None:  # noqa: B027
        """Looks for what no event told of; does not wait. Called on `[schedule] rescan`, from the schedule's thread."""

    def confirm(self) -> int:
        """Forgets what it did not find any more and held back, since that was most of its documents; returns how many
        documents these are. 0 where nothing is held back."""
        return 0

    @abstractmethod
    def status(self, pending: int) -> SourceStatus:
        """How it stands. `pending`: how many of its documents the pipeline has not committed."""

    @abstractmethod
    async def delivered(self) -> None:
        """Returns once all that the source holds now has been handed to the pipeline: what `hippoctl wait` waits for."""

    def unread(self) -> str | None:
        """What it holds and has not handed to the pipeline, as a clause for the note of an answer; None where there is none.
        On the event loop, at every query."""
        return None

    def usage(self) -> Usage | None:
        """What it has fetched and not committed, where it limits that: shown among the queues of `/metrics`."""
        return None


@dataclass(frozen=True, slots=True)
class SourceParts:
    """What a source is made with."""

    store: "Store"
    pipeline: "Pipeline"
    pool: "WorkerPool"
    split: "SplitSettings"
    hard_links: "dict[object, HardLinks]" = field(default_factory=dict)
    """What the folders with the same labels know of the names of their files."""


@dataclass(frozen=True, slots=True)
class SourceKind(Generic[S]):
    """The declaration of a kind: all that configuration, daemon, doctor, API and docs know of it.

    Importing it must be cheap. `make` and `inspect` import what they need when they are called.
    """

    table: str
    """The table of the configuration, `[[table]]`, and the `kind` in `status`."""
    section: type[S]
    """The keys of the table."""
    status: type[SourceStatus]
    """The fields of its entry in `status`."""
    make: Callable[[S, SourceParts], Source]
    conflicts: Callable[[Sequence[S], Mapping[str, Path]], list[str]]
    """What cannot stand together in these tables, or with the paths, by their keys, where hippod keeps files of its own: one
    sentence each, key first."""
    claims: "Callable[[S], Iterator[Claim]]"
    """Which documents a table's source owns."""
    inspect: "Callable[[Sequence[S]], Iterator[Finding]]"
    """What `hippoctl doctor` finds out about these tables without a daemon."""
