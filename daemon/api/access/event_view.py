"""The events that one reader may see, as if only its own documents existed."""

from collections.abc import Callable

from daemon.contract.choices import DocumentState
from daemon.contract.status import Event, EventName


class EventView:
    """One reader's view of the events. It numbers the events itself, and counts only visible documents in a commit."""

    def __init__(self, sees: Callable[[object], bool]) -> None:
        self._sees = sees
        self._last_id = 0
        self._committed = 0
        self._removed = 0

    def shown(self, event: Event, before: object | None, after: object | None) -> Event | None:
        """Returns the event as the reader sees it, None if it does not. `before`, `after`: the document's versions."""
        if event.event == EventName.COMMIT:
            return self._commit(event)
        was_seen, is_seen = before is not None and self._sees(before), after is not None and self._sees(after)
        if event.event == DocumentState.PENDING:
            # The document's future labels are unknown: use its present labels, or its source's if it is new.
            return self._numbered(event) if was_seen or (before is None and is_seen) else None
        if is_seen:
            self._committed += 1
            return self._numbered(event)
        if was_seen:  # removed or relabelled; the reader must not learn which of the two happened
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
