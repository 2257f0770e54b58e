"""Records the answered calls of the model by UTC day, source and purpose, on disk.

The file has one JSON line per entry. A call appends a line with its own counts; lines with equal keys add up. The file is
rewritten with one line per key at the start and when it has grown. The lines survive the death of the process; a power failure
may lose those of the last seconds.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import structlog

from store.store import Store

FILE = "costs.jsonl"
MAX_FILE_BYTES = 4 * 1024 * 1024
"""Size at which the file is rewritten. If its entries need more, the limit doubles."""

log = structlog.get_logger()

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
    """`day` is a UTC date as ISO text. `source` is None for calls that no source's document needed, such as queries."""

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
    """The ledger of one store. Use on the event loop only. If the file cannot be written, counting continues in memory."""

    def __init__(
        self, file: Path | None, price: Callable[[], Price | None], clock: Callable[[], float] = time.time
    ) -> None:
        """Without `file`, the ledger lasts as long as the process. `price` is asked at every call."""
        self._file = file
        self.price = price
        self._clock = clock
        self._entries: dict[CostKey, Spent] = {}
        self._today = ("", Spent())
        """The last UTC day with a call, and its sum."""
        self._out: TextIO | None = None
        self._rewrite_at = MAX_FILE_BYTES
        self._is_written = True
        for key, spent in _lines(file):
            self._add(key, spent)
        self._rewrite()

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
        if self._out is not None:
            try:
                self._out.write(_line(key, spent))
                self._out.flush()
                if self._out.tell() <= self._rewrite_at:
                    return
            except OSError as error:
                self._log_trouble(error)
        self._rewrite()

    def entries(self, since: date | None = None) -> list[tuple[CostKey, Spent]]:
        """Returns the entries from the day `since` on, by day, source and purpose. May be called in any thread."""
        first = "" if since is None else since.isoformat()
        found = [(key, spent) for key, spent in list(self._entries.items()) if key.day >= first]
        return sorted(found, key=lambda entry: (entry[0].day, entry[0].source or "", entry[0].purpose))

    def today(self) -> Spent:
        """Returns what all calls of the present UTC day cost."""
        day, spent = self._today
        return spent if day == self.day.isoformat() else Spent()

    def close(self) -> None:
        if self._out is not None:
            with suppress(OSError):
                self._out.close()
            self._out = None

    def _add(self, key: CostKey, spent: Spent) -> None:
        self._entries.setdefault(key, Spent()).add(spent)
        if key.day > self._today[0]:
            self._today = (key.day, Spent())
        if key.day == self._today[0]:
            self._today[1].add(spent)

    def _rewrite(self) -> None:
        """Replaces the file atomically with one line per key. If that fails, the next call tries again."""
        if self._file is None:
            return
        part = self._file.with_suffix(".part")
        try:
            out = part.open("w", encoding="utf-8")
            out.writelines(_line(key, spent) for key, spent in self.entries())
            out.flush()
            part.rename(self._file)
        except OSError as error:
            self._log_trouble(error)
            return
        self.close()
        self._out, self._is_written = out, True
        self._rewrite_at = max(MAX_FILE_BYTES, 2 * out.tell())

    def _log_trouble(self, error: OSError) -> None:
        """Logs the first error after a success, because every later call tries again."""
        if self._is_written:
            log.warning("costs_not_written", file=str(self._file), error=error)
        self._is_written = False
        self.close()


def _line(key: CostKey, spent: Spent) -> str:
    entry = {**key._asdict(), "calls": spent.calls, "prompt": spent.prompt, "completion": spent.completion}
    return json.dumps({**entry, "money": spent.money}) + "\n"


def _lines(file: Path | None) -> Iterator[tuple[CostKey, Spent]]:
    """Yields the file's entries. Skips lines that are not entries, such as an incomplete last line."""
    if file is None or not file.exists():
        return
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                yield _entry(json.loads(line))
            except (KeyError, TypeError, ValueError) as error:
                log.warning("costs_line_skipped", file=str(file), error=error)


def _entry(line: dict[str, Any]) -> tuple[CostKey, Spent]:
    source = line["source"]
    key = CostKey(
        date.fromisoformat(line["day"]).isoformat(), None if source is None else str(source), str(line["purpose"])
    )
    return key, Spent(int(line["calls"]), int(line["prompt"]), int(line["completion"]), float(line["money"]))


def source_of_passage(store: Store, passage: str) -> str | None:
    """Returns the source of the first document, by URI, that needs the passage extracted; None if there is none."""
    for uri in store.documents_to_extract(passage):
        if (document := store.document(uri)) is not None:
            return document.source
    return None
