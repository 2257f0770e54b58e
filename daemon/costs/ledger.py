"""Records the answered calls of the model by UTC day, source and purpose, on disk.

The file has one JSON line per entry. A call appends a line with its own counts; lines with equal keys add up. The file is
rewritten with one line per key at the start and when it has grown.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

from daemon.append_file import AppendFile
from store.store import Store

FILE = "costs.jsonl"

_source: ContextVar[str | None] = ContextVar("cost_source", default=None)


@contextmanager
def charged_to(source: str | None) -> Iterator[None]:
    """Attributes the calls of the block, in this task, to a source of documents. Calls outside such a block have no source."""
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


@dataclass(frozen=True, slots=True)
class Price:
    """Money per million prompt and completion tokens."""

    prompt: float
    completion: float

    def money(self, prompt_tokens: float, completion_tokens: float) -> float:
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


class CostKey(NamedTuple):
    """`day` is a UTC date as ISO text. `source` is None for calls without a document, such as those of queries."""

    day: str
    source: str | None
    purpose: str


@dataclass(slots=True)
class Spent:
    calls: int = 0
    prompt: int = 0
    completion: int = 0
    money: float = 0.0

    def add(self, other: "Spent") -> None:
        self.calls += other.calls
        self.prompt += other.prompt
        self.completion += other.completion
        self.money += other.money

    @property
    def tokens(self) -> int:
        return self.prompt + self.completion


class CostLedger:
    """Use on the event loop only."""

    def __init__(
        self,
        file: Path | None,
        price: Callable[[], Price | None],
        clock: Callable[[], float] = time.time,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Without `file`, the ledger lasts as long as the process. `price` is called at every model call. `check` raises
        OSError if the file must not be replaced at present."""
        self.price = price
        self._clock = clock
        self._entries: dict[CostKey, Spent] = {}
        self._today = ("", Spent())
        """(last UTC day with a call, sum of this day)."""
        self._file = AppendFile(file, self._take, lambda: starmap(_entry, self.entries()), check)

    @property
    def day(self) -> date:
        """The present UTC day."""
        return datetime.fromtimestamp(self._clock(), UTC).date()

    def count(self, purpose: str, prompt_tokens: int, completion_tokens: int) -> None:
        """Records one answered call at the present price."""
        price = self.price()
        money = 0.0 if price is None else price.money(prompt_tokens, completion_tokens)
        key = CostKey(self.day.isoformat(), _source.get(), purpose)
        self.record(key, Spent(1, prompt_tokens, completion_tokens, money))

    def record(self, key: CostKey, spent: Spent) -> None:
        """Adds `spent` to an entry."""
        self._add(key, spent)
        self._file.append(_entry(key, spent))

    def entries(self, since: date | None = None) -> list[tuple[CostKey, Spent]]:
        """Returns the entries from the day `since` on, by day, source and purpose. May be called in any thread."""
        first = "" if since is None else since.isoformat()
        found = [(key, spent) for key, spent in list(self._entries.items()) if key.day >= first]
        return sorted(found, key=lambda entry: (entry[0].day, entry[0].source or "", entry[0].purpose))

    def today(self) -> Spent:
        """Returns the cost of all calls of the present UTC day."""
        day, spent = self._today
        return spent if day == self.day.isoformat() else Spent()

    def close(self) -> None:
        self._file.close()

    def _add(self, key: CostKey, spent: Spent) -> None:
        self._entries.setdefault(key, Spent()).add(spent)
        if key.day > self._today[0]:
            self._today = (key.day, Spent())
        if key.day == self._today[0]:
            self._today[1].add(spent)

    def _take(self, line: Any) -> None:
        source = line["source"]
        day = date.fromisoformat(line["day"]).isoformat()
        spent = Spent(int(line["calls"]), int(line["prompt"]), int(line["completion"]), float(line["money"]))
        self._add(CostKey(day, None if source is None else str(source), str(line["purpose"])), spent)


def _entry(key: CostKey, spent: Spent) -> dict[str, Any]:
    return {**key._asdict(), **asdict(spent)}


def source_of_passage(store: Store, passage: str) -> str | None:
    """Returns the source of the first document, by URI, that needs an extraction of the passage; None if no document does."""
    for uri in store.documents_to_extract(passage):
        if (document := store.document(uri)) is not None:
            return document.source
    return None
