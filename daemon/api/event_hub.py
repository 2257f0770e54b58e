"""Delivers events from any thread to any number of readers. A slow reader neither blocks the daemon nor fills its memory.

A reader receives only events of documents that it may see, as if no other documents existed.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from daemon.contract.choices import DocumentState
from daemon.contract.status import Event, EventName

EVENTS_QUEUED_MAX = 1024
"""Maximum events queued for one reader. If the queue is full, its oldest event is dropped."""


class EventView:
    """One reader's view of the events. Events are numbered for this reader, and a commit counts only visible documents."""

    def __init__(self, sees: Callable[[object], bool]) -> None:
        self._sees = sees
        self._last_id = 0
        self._committed = 0
        self._removed = 0

    def shown(self, event: Event, before: object | None, after: object | None) -> Event | None:
        """Returns the event as the reader sees it; None if the reader must not see it. `before`, `after`: the document before
        and after the change, None if absent."""
        if event.event == EventName.COMMIT:
            return self._commit(event)
        was_seen, is_seen = before is not None and self._sees(before), after is not None and self._sees(after)
        if event.event == DocumentState.PENDING:
            # The document's future labels are unknown: use its present labels, or the source's for a new document.
            return self._numbered(event) if was_seen or (before is None and is_seen) else None
        if is_seen:
            self._committed += 1
            return self._numbered(event)
        if was_seen:  # removed or relabelled; the reader must not learn which
            self._removed += 1
            known = {"commit": (event.model_extra or {}).get("commit")}
            return self._numbered(Event(time=event.time, event=DocumentState.REMOVED.value, uri=event.uri, **known))
        return None

    def _commit(self, event: Event) -> Event | None:
        documents, self._committed = self._committed, 0
        removed, self._removed = self._removed, 0
        if not documents and not removed:
            return None
        return self._numbered(event.model_copy(update={"documents": documents, "removed": removed}))

    def _numbered(self, event: Event) -> Event:
        self._last_id += 1
        return event.model_copy(update={"id": self._last_id})


class EventHub:
    """`publish` may be called from any thread and never waits."""

    def __init__(self, capacity: int = EVENTS_QUEUED_MAX) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._readers: set[EventSubscription] = set()
        self._last_id = 0
        self._closed = False

    def publish(
        self,
        event: str,
        uri: str | None = None,
        *,
        before: object | None = None,
        after: object | None = None,
        **more: Any,
    ) -> None:
        """Sends an event to every reader that may see the event.

        `before`, `after`: as in `EventView.shown`. Values of `more` must be JSON values.
        """
        with self._lock:
            self._last_id += 1
            if not self._readers:
                return
            published = Event(id=self._last_id, time=datetime.now(UTC), event=event, uri=uri, **more)
            for reader in self._readers:
                reader.push(published, before, after)

    def events(self, view: EventView | None = None) -> "EventSubscription":
        """Adds a reader on the running event loop; it receives the events published from now on, filtered by `view`."""
        reader = EventSubscription(self, self._lock, self._capacity, asyncio.get_running_loop(), view)
        with self._lock:
            if self._closed:
                reader.end()
            else:
                self._readers.add(reader)
        return reader

    def leave(self, reader: "EventSubscription") -> None:
        with self._lock:
            self._readers.discard(reader)

    def close(self) -> None:
        """Ends all readers; later readers end at once."""
        with self._lock:
            self._closed = True
        self.disconnect()

    def disconnect(self) -> None:
        """Ends all present readers. Readers may reconnect, possibly with another view."""
        with self._lock:
            for reader in self._readers:
                reader.end()
            self._readers.clear()


class EventSubscription:
    """One reader's bounded queue. On overflow, one `lost` event replaces the oldest events and states their number."""

    def __init__(
        self,
        hub: EventHub,
        lock: threading.Lock,
        capacity: int,
        loop: asyncio.AbstractEventLoop,
        view: EventView | None = None,
    ) -> None:
        self._hub = hub
        self._view = view
        self._lock = lock
        self._capacity = capacity
        self._loop = loop
        self._queue: deque[Event] = deque()
        self._lost = 0
        self._ended = False
        self._woken = False
        self._wake = asyncio.Event()

    def push(self, event: Event, before: object | None, after: object | None) -> None:
        """Queues the event if the view shows it. The caller holds the lock."""
        shown = event if self._view is None else self._view.shown(event, before, after)
        if shown is None:
            return
        if len(self._queue) >= self._capacity:
            self._queue.popleft()
            self._lost += 1
        self._queue.append(shown)
        self._wake_reader()

    def end(self) -> None:
        """Ends the subscription after the queued events. The caller holds the lock."""
        self._ended = True
        self._wake_reader()

    def _wake_reader(self) -> None:
        if not self._woken:  # one wake-up, however many events come before the reader runs
            self._woken = True
            with suppress(RuntimeError):  # the loop is closed, so no reader is left
                self._loop.call_soon_threadsafe(self._wake.set)

    def __aiter__(self) -> "EventSubscription":
        return self

    async def __anext__(self) -> Event:
        while True:
            with self._lock:
                if self._lost:
                    count, self._lost = self._lost, 0
                    return Event(time=datetime.now(UTC), event=EventName.LOST, count=count)  # type: ignore[call-arg]
                if self._queue:
                    return self._queue.popleft()
                if self._ended:
                    raise StopAsyncIteration
                self._woken = False
                self._wake.clear()
            await self._wake.wait()

    def close(self) -> None:
        self._hub.leave(self)
