"""What one reader sees of the events: those of its documents, as if there were no others."""

from collections.abc import Callable

from daemon.contract.choices import DocumentState
from daemon.contract.status import Event, EventName


class EventView:
    """Of one reader. Its events have numbers of their own, and a commit counts what the reader sees of it."""

    def __init__(self, sees: Callable[[object], bool]) -> None:
        self._sees = sees
        self._last_id = 0
        self._committed = 0
        self._removed = 0

    def shown(self, event: Event, before: object | None, after: object | None) -> Event | None:
        """The event as the reader sees it, None where it does not. `before`, `after`: the document it is about."""
        if event.event == EventName.COMMIT:
            return self._commit(event)
        was_seen, is_seen = before is not None and self._sees(before), after is not None and self._sees(after)
        if event.event == DocumentState.PENDING:
            # What it will be is not known: it counts as what it is, or else as its source's.
            return self._numbered(event) if was_seen or (before is None and is_seen) else None
        if is_seen:
            self._committed += 1
            return self._numbered(event)
        if was_seen:  # removed, or given other labels: which of the two is not for this reader
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
