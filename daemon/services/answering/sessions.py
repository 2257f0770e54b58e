"""Sessions as the API shows them; how long they live, and that they forget what the memory forgets."""

import asyncio
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import structlog

from daemon.contract.base import utc_time
from daemon.contract.http.problem import FieldError
from daemon.contract.sessions import RemoveSessionsResponse, SessionEntry, SessionList, SessionQuestion
from daemon.errors import Invalid
from memory.answering.working_memory.records.points import WorkingMemory
from memory.answering.working_memory.records.serialization import BadTrace, memory_from_json, memory_to_json
from store.sessions import Session, SessionDamaged, Sessions
from store.snapshot import Snapshot
from store.store import Store

log = structlog.get_logger()


class SessionService:
    """The `SessionPort`, and what deep questions keep their points with. `keep_s`: seconds after its last question
    that a session goes; asked at each use, as it can change while the daemon runs."""

    def __init__(self, store: Store, keep_s: Callable[[], float]) -> None:
        self._store = store
        self._sessions = Sessions(store.folder)
        self._keep_s = keep_s
        self._writing = threading.Lock()
        """Held from reading a session until it is written: a sweep must not bring back what a question has replaced."""

    @staticmethod
    def name(text: str) -> str:
        """One spelling of a name that Unicode can write in several."""
        return unicodedata.normalize("NFC", text)

    def load(self, name: str) -> Session | None:
        """None where there is none, or it has expired. Invalid where its file cannot be read."""
        try:
            session = self._sessions.load(name)
            if session is not None:
                memory_from_json(session.memory)
        except (SessionDamaged, BadTrace) as error:
            detail = str(error)
            if isinstance(error, BadTrace):
                detail = f'the session "{name}" holds what is not understood ({error}); remove it (hippoctl sessions rm {name})'
            raise Invalid(
                f"{detail[:1].upper()}{detail[1:]}.", errors=[FieldError(field="session", message=detail)]
            ) from None
        if session is not None and self._sessions.expired(session, self._keep_s()):
            with self._writing:
                session = self._sessions.load(name)  # unless it was written anew just now
                if session is not None and self._sessions.expired(session, self._keep_s()):
                    self._sessions.remove(name)
                    return None
        return session

    def save(
        self,
        name: str,
        memory: Mapping[str, Any],
        commit: int,
        question: str,
        answer: str,
        before: Session | None,
    ) -> None:
        """Durable when it returns. Raises OSError."""
        with self._writing:
            self._sessions.save(name, memory, commit, question, answer, before)

    async def sessions(self) -> SessionList:
        return await asyncio.to_thread(self._list)

    async def remove_sessions(self, names: Sequence[str]) -> RemoveSessionsResponse:
        return await asyncio.to_thread(self._remove, names)

    def _list(self) -> SessionList:
        self.sweep()
        return SessionList(sessions=[self._entry(name) for name in self._sessions.names()])

    def _remove(self, names: Sequence[str]) -> RemoveSessionsResponse:
        wanted = [self.name(name) for name in names]
        with self._writing:  # a sweep under way would write back what it has read
            missing = [name for name in wanted if not self._sessions.remove(name)]
        return RemoveSessionsResponse(removed=len(wanted) - len(missing), missing=missing)

    def _entry(self, name: str) -> SessionEntry:
        try:
            session = self._sessions.load(name)
            if session is None:  # removed meanwhile
                return SessionEntry(name=name, error="it is gone")
            points = [point.description for point in memory_from_json(session.memory).points]
        except (SessionDamaged, BadTrace) as error:
            return SessionEntry(name=name, error=str(error))
        return SessionEntry(
            name=name,
            commit=session.commit,
            created_at=utc_time(session.created),
            used_at=utc_time(session.used),
            expires_at=utc_time(session.used + self._keep_s()),
            points=points,
            questions=[
                SessionQuestion(question=each.question, answer=each.answer, commit=each.commit, time=_utc(each.time))
                for each in session.questions
            ],
        )

    def sweep(self) -> None:
        """Removes what has expired, and from the others the points that no passage supports any more: what a deleted
        document said must not live on in a session. Never raises for one session's trouble."""
        for name in self._sessions.names():
            with self._writing:
                self._sweep(name)

    def _sweep(self, name: str) -> None:
        try:
            session = self._sessions.load(name)
            if session is None:
                return
            if self._sessions.expired(session, self._keep_s()):
                self._sessions.remove(name)
                log.info("session_expired", session=name)
                return
            memory = memory_from_json(session.memory)
            supported = drop_unsupported_points(
                memory, self._store.snapshot()
            )  # taken after the session: never older than it
            if supported != memory:
                dropped = len(memory.points) - len(supported.points)
                self._sessions.keep(session, memory_to_json(supported), dropped)
        except (SessionDamaged, BadTrace, OSError) as error:
            log.warning("session_unreadable", session=name, error=error)


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def drop_unsupported_points(memory: WorkingMemory, snapshot: Snapshot) -> WorkingMemory:
    """The points with those of their passages that live in `snapshot`; a point without any is left out.

    Entities are not looked at, as a question does: the graph may lack them for as long as a model takes to read a passage.
    """
    points = []
    for point in memory.points:
        passages = tuple(id for id in point.passages if snapshot.passage_row(id) is not None)
        if passages:
            points.append(replace(point, passages=passages))
    return replace(memory, points=tuple(points))
