"""The passages that are committed and wait for the extractor: read many at once, committed as they come, tried again.

An outage of the model is normal. It stops the reading, not the daemon: passages go on waiting, `status` says for what and
since when, and a few tokens' worth of question finds out when the model is back. The same question tells an outage from a
passage that the model cannot handle: then others are answered, and the passage alone is marked as failed.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from daemon.metrics import WAITING, timed
from daemon.pipeline.marks import Failure, failure_mark, failure_of, is_unread
from daemon.pipeline.paid import Paid
from daemon.pipeline.translate import RETRIES_S
from daemon.workers import WorkerFailed
from memory.llm.errors import ModelDown, ModelError
from store.store import Store
from store.types import Extraction, PassageText

TOGETHER = 96
GATHER_S = 0.2
"""A commit takes what has come within this time."""
AHEAD = 8 * TOGETHER
"""Passages that may be read and not committed: beyond, reading waits."""
PROBE_FIRST_S, PROBE_MOST_S = 1.0, 30.0
MANY_FAILED = 1024
"""Failures that are looked through for deleted passages once there are as many, and then at each doubling."""
QUIET_S = 2.0
"""Trouble that lasts as long is worth telling of, before it is known to be an outage."""

log = structlog.get_logger()

Read = Callable[[PassageText], Awaitable[Extraction]]
Learn = Callable[[Mapping[str, Extraction]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Outage:
    """Why nothing is read, and since when (Unix seconds). `logged`: the reason as it may stand in the log."""

    reason: str
    since: float
    logged: str


class Backlog:
    """On the event loop. `read` is the extractor, `probe` returns when its model answers, `learn` commits.

    `hold`: nothing is read until it is asked for in bulk (`waiting`, `take`, `give`).
    """

    def __init__(
        self,
        store: Store,
        name: str,
        read: Read,
        learn: Learn,
        paid: Paid,
        at_once: int,
        probe: Callable[[], Awaitable[None]] | None = None,
        hold: bool = False,
    ) -> None:
        self.name = name
        self.hold = hold
        self._store = store
        self._read = read
        self._learn = learn
        self._paid = paid
        self._at_once = at_once
        self._probe = probe
        self._announced: set[str] = set()
        self._waiting: OrderedDict[str, int] = OrderedDict()
        self._active: set[str] = set()
        self._found: dict[str, Extraction] = {}
        self._failed: dict[str, tuple[Failure, float | None]] = {}
        self._many_failed = MANY_FAILED
        self._changed = asyncio.Event()
        self._up = asyncio.Event()
        self._up.set()
        self._trouble: Outage | None = None
        self._outage: Outage | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Takes up what an earlier run left: unread passages, answers that were paid for, failures."""
        for id in self._store.read_by(is_unread):
            self._waiting[id] = 0
        for id in self._store.read_by(lambda extractor: failure_of(extractor) is not None):
            failure = failure_of(self._store.extractor_of(id))
            assert failure is not None
            self._failed[id] = (failure, _next_try(failure))
        self._paid.drop(lambda id: not self._wanted(id))
        for id, extraction in self._paid.extractions.items():
            self._waiting.pop(id, None)
            self._failed.pop(id, None)
            self._found[id] = extraction
        if self._found:
            log.info("paid_extractions_recovered", passages=len(self._found))
        self._tasks = [asyncio.create_task(self._work(), name=f"extract {n}") for n in range(self._at_once)]
        self._tasks.append(asyncio.create_task(self._commit(), name="extractions"))
        self._tasks.append(asyncio.create_task(self._look(), name="model"))
        for task in self._tasks:
            task.add_done_callback(_ended)

    def alive(self) -> bool:
        """Whether every part that was started runs: nothing would be read, or committed, without one of them."""
        return not any(task.done() for task in self._tasks)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._paid.close()

    def _wanted(self, id: str) -> bool:
        return bool(self._store.users(id)) and self._store.extractor_of(id) != self.name

    # What comes in.

    def announce(self, ids: Iterable[str]) -> None:
        """Passages that are about to be committed and are to be read then."""
        self._announced.update(ids)

    def committed(self, held: Iterable[str]) -> None:
        """A commit has come: what it made known may be read.

        `held` are the passages of the documents that it wrote, but for those that these gave triples for. What was announced
        and is not alive is forgotten: it is announced again, or held, when it comes to life. So the cost follows the commit.
        """
        announced, self._announced = self._announced, set()
        ready = [id for id in announced if self._store.users(id)]
        ready += [id for id in held if id not in announced and self._came_back(id)]
        self._forget_dead_failures()
        self.want(id for id in ready if is_unread(self._store.extractor_of(id)))

    def _came_back(self, id: str) -> bool:
        """Whether a passage that nobody announced is to be read, as only a stand-in did; a failure of old is listed again.

        One that nobody read at all is announced where it is to be read: another document gave its triples.
        """
        extractor = self._store.extractor_of(id)
        failure = failure_of(extractor)
        if failure is not None and id not in self._failed and not self._in_line(id):
            self._failed[id] = (failure, _next_try(failure))
        return extractor is not None and is_unread(extractor)

    def _forget_dead_failures(self) -> None:
        """Now and then, so that the cost for one commit does not grow with the failures; they come back with the passage."""
        if len(self._failed) < self._many_failed:
            return
        dead = [id for id in self._failed if not self._store.users(id)]
        for id in dead:
            del self._failed[id]
        self._paid.committed(dead)
        self._many_failed = max(2 * len(self._failed), MANY_FAILED)

    def _in_line(self, id: str) -> bool:
        return id in self._waiting or id in self._active or id in self._found

    def want(self, ids: Iterable[str], attempts: int = 0) -> int:
        """Puts passages at the end of the line; returns how many were not in it."""
        count = 0
        for id in ids:
            if not self._in_line(id):  # a failure that is not committed yet stays one
                self._failed.pop(id, None)
                self._waiting[id] = attempts
                count += 1
        self._notify()
        return count

    async def reread(self) -> int:
        """Every living passage that the present extractor has not read; returns how many."""
        ids = await asyncio.to_thread(self._store.read_by, lambda extractor: extractor != self.name)
        return self.want(ids)

    def retry(self, wanted: Callable[[str, float | None], bool]) -> list[str]:
        """Tries failed passages again, those `wanted` by id and time of the next try; returns them."""
        again = [(id, failure) for id, (failure, due) in self._failed.items() if wanted(id, due)]
        for id, failure in again:
            self.want([id], failure.attempts)
        return [id for id, _ in again]

    # How it stands.

    @property
    def outage(self) -> Outage | None:
        """What reading waits for, if it does."""
        if self._outage is not None:
            return self._outage
        trouble = self._trouble
        return trouble if trouble is not None and time.time() - trouble.since > QUIET_S else None

    def heard(self, outcome: str, good: bool) -> None:
        """A call to the model ended: so trouble is known before it has lasted through every retry."""
        if good:
            self._trouble = None
        elif self._trouble is None:
            why = f"calls to the model fail ({outcome})"
            self._trouble = Outage(why, time.time(), why)

    def open(self) -> list[str]:
        """Passages that are not read, or read and not committed."""
        return [*self._active, *self._waiting, *self._found]

    def failures(self) -> dict[str, Failure]:
        """Passages of documents that could not be read; a deleted one's failure says nothing to anybody."""
        return {id: failure for id, (failure, _) in self._failed.items() if self._store.users(id)}

    def __len__(self) -> int:
        return len(self._waiting) + len(self._active) + len(self._found)

    async def drained(self) -> None:
        """Returns once all that is here now is read and committed, or has failed. At once where reading is held."""
        left = set(self.open()) if not self.hold else set()
        while left:
            await self._change()
            await asyncio.sleep(GATHER_S)  # many changes at once: comparing sets at each would be quadratic
            left &= set(self.open())

    # What happens to it.

    async def _work(self) -> None:
        while True:
            await self._up.wait()
            if self.hold or not self._waiting or len(self._found) >= AHEAD:
                await self._change()
                continue
            id, attempts = self._waiting.popitem(last=False)
            passage = self._store.passage(id)
            if passage is None or not self._store.users(id):
                self._announced.add(id)  # forgotten since; it may come back
                self._notify()
                continue
            self._active.add(id)
            try:
                await self._one(passage, attempts)
            finally:
                self._active.discard(id)
                self._notify()

    async def _one(self, passage: PassageText, attempts: int) -> None:
        try:
            with timed("extract"):
                found = await self._read(passage)
            self.give(found)
            return
        except ModelDown as error:
            # What the probe was told is told on: its question holds no document's text, and the passage's did.
            down = None if self._outage is not None else await self._down()
            if down is not None:
                self._went_down(down)
            if self._outage is not None:
                self._waiting[passage.id] = attempts
                self._waiting.move_to_end(passage.id, last=False)
                return
            reason = str(error)
        except (ModelError, WorkerFailed) as error:
            reason = str(error)
        except Exception as error:  # whatever one passage does to us, the others go on
            log.error("extraction_failed", passage=passage.id, exc_info=True)
            reason = f"internal error: {type(error).__name__}; see the log"
        self._fail(passage.id, Failure(attempts + 1, reason))

    def give(self, extraction: Extraction) -> None:
        """What was found in a passage, to be committed."""
        self._paid.found(extraction)
        self._found[extraction.passage] = extraction
        self._waiting.pop(extraction.passage, None)
        self._notify()

    def fail(self, id: str, reason: str) -> None:
        """A passage that was read outside, and could not be."""
        self._fail(id, Failure(self._waiting.pop(id, 0) + 1, reason))
        self._notify()

    def _fail(self, id: str, failure: Failure) -> None:
        # Why is in `ls` alone: a server may quote the passage in its refusal.
        log.warning("passage_failed", passage=id, attempts=failure.attempts)
        self._failed[id] = (failure, _next_try(failure))
        present = self._store.extractor_of(id)
        if is_unread(present) or failure_of(present) is not None:
            # An older extraction of a model's is better than none and stays; a stand-in's triples stay under the mark.
            self._found[id] = Extraction(id, failure_mark(failure), triples=self._store.extracted(id))

    async def _down(self) -> ModelDown | None:
        """Why the model does not answer, None where it does."""
        if self._probe is None:
            return None
        try:
            await self._probe()
        except ModelDown as error:
            return error
        return None

    def _went_down(self, error: ModelDown) -> None:
        if self._outage is None:
            since = self._trouble.since if self._trouble is not None else time.time()
            self._outage = Outage(str(error), since, error.unquoted)
            self._up.clear()
            log.warning("model_down", error=error, waiting=len(self))

    async def _look(self) -> None:
        """Finds out when the model is back."""
        while True:
            if self._outage is None:
                await self._change()
                continue
            pause = PROBE_FIRST_S
            while await self._down() is not None:
                await asyncio.sleep(pause)
                pause = min(pause * 2, PROBE_MOST_S)
            log.info("model_back", waited_s=round(time.time() - self._outage.since, 1), waiting=len(self))
            self._outage = self._trouble = None
            self._up.set()
            self._notify()

    async def _commit(self) -> None:
        while True:
            WAITING.set(len(self))
            if not self._found:
                await self._change()
                continue
            if len(self._found) < TOGETHER and (self._active or self._waiting):
                await asyncio.sleep(GATHER_S)
            batch = dict(list(self._found.items())[: 4 * TOGETHER])
            await self._learn(batch)
            for id, found in batch.items():
                failure = failure_of(self._store.extractor_of(id))
                if failure is not None and failure_of(found.extractor) is None:
                    self._failed[id] = (failure, _next_try(failure))  # what was found in it could not be committed
            self._paid.committed(id for id, found in batch.items() if failure_of(found.extractor) is None)
            for id, extraction in batch.items():
                if self._found.get(id) is extraction:
                    del self._found[id]
            self._notify()

    async def _change(self) -> None:
        await self._changed.wait()

    def _notify(self) -> None:
        """Wakes all who wait for a change now, and nobody later."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def settled(self) -> None:
        """Returns once all that was found is committed."""
        while self._found:
            await self._change()

    def waiting(self, count: int) -> Sequence[PassageText]:
        """The next passages in the line, which stay in it until `give`."""
        texts = (self._store.passage(id) for id in list(self._waiting)[:count])
        return [text for text in texts if text is not None]


def _next_try(failure: Failure) -> float | None:
    return time.time() + RETRIES_S[failure.attempts - 1] if failure.attempts <= len(RETRIES_S) else None


def _ended(task: asyncio.Task[None]) -> None:
    """Tells of a part that ended by itself: they run until they are cancelled."""
    if not task.cancelled():
        log.critical("extraction_ended", task=task.get_name(), exc_info=task.exception())
