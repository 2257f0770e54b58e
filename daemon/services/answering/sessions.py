"""The API's sessions: lists and removes sessions, and drops expired ones and points without passages."""

import asyncio
import json
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import structlog

from daemon.contract.answering.ask import (
    RemoveSessionsRequest,
    RemoveSessionsResponse,
    SessionEntry,
    SessionList,
    SessionQuestion,
)
from daemon.contract.base import utc_time
from daemon.contract.http.routes import Need, Route, served
from daemon.contract.scope import ClientScope, Scope
from daemon.errors import Invalid
from daemon.services.scopes import ScopeService
from memory.answering.working_memory.points import WorkingMemory
from memory.answering.working_memory.trace import BadWorkingMemory, memory_from_json, memory_to_json
from store.sessions import Session, SessionDamaged, Sessions
from store.snapshot import Snapshot
from store.store import Store

log = structlog.get_logger()


def session_key(name: str, scope: Scope | None) -> str:
    """Returns the store's key of a session. Sessions with the same name are separate for each scope, and for each client that
    sees only a part of the memory."""
    if scope is None:
        return name
    return f"~{_owner(scope)}~{sha256(f'{requested_scope(scope)} {name}'.encode()).hexdigest()[:32]}"


def _owner(scope: Scope | None) -> str:
    """Returns a digest of a restricted client's name and labels, so that new labels mean new sessions; "" for other clients."""
    if not isinstance(scope, ClientScope):
        return ""
    return sha256(json.dumps([scope.client, scope.visible]).encode()).hexdigest()[:16]


def _owner_of(key: str) -> str:
    """Returns the digest (`_owner`) in a session's key."""
    return key[1:].partition("~")[0] if key.startswith("~") else ""


def requested_scope(scope: Scope | None) -> str:
    """Returns the requested scope as JSON, without the client's restriction; "" without a scope."""
    fields = {name: getattr(scope, name) for name in Scope.model_fields} if scope is not None else {}
    requested = Scope(**fields)
    return requested.model_dump_json() if requested != Scope() else ""


class SessionService:
    """Stores the points of deep questions, and serves `/v1/sessions`.

    `keep_s` returns the seconds that a session is kept after its last question. It is called at each use, because it may change
    while the daemon runs.
    """

    def __init__(self, store: Store, keep_s: Callable[[], float], scopes: ScopeService) -> None:
        self._store = store
        self._scopes = scopes
        self._sessions = Sessions(store.folder, check=store.check_folder)
        self._keep_s = keep_s
        self._writing = threading.Lock()
        """Held from reading a session until writing it, so that a sweep does not undo the changes that a question makes."""

    @staticmethod
    def name(text: str) -> str:
        """Returns the name in Unicode form NFC, so that equal names have one spelling."""
        return unicodedata.normalize("NFC", text)

    def load(self, key: str, name: str) -> Session | None:
        """Returns the session; None if it does not exist or has expired. Raises Invalid if its file is damaged."""
        try:
            session = self._sessions.load(key)
            if session is not None:
                memory_from_json(session.memory)
        except (SessionDamaged, BadWorkingMemory) as error:
            detail = str(error)
            if isinstance(error, BadWorkingMemory):
                detail = f'the session "{name}" has unusable content ({error}); remove it (hippoctl sessions rm {name})'
            raise Invalid(f"{detail[:1].upper()}{detail[1:]}.", errors={"session": detail}) from None
        if session is not None and self._sessions.expired(session, self._keep_s()):
            with self._writing:
                session = self._sessions.load(key)  # the session may have been used again meanwhile
                if session is not None and self._sessions.expired(session, self._keep_s()):
                    self._sessions.remove(key)
                    return None
        return session

    def save(
        self,
        name: str,
        scope: Scope | None,
        memory: Mapping[str, Any],
        commit: int,
        question: str,
        answer: str,
        before: Session | None,
    ) -> bool:
        """Saves the session durably; returns whether it was saved.

        Returns False without saving if the session `before` was removed since, because saving would restore its points. Raises
        OSError.
        """
        with self._writing:
            key, within = session_key(name, scope), requested_scope(scope) or None
            if before is not None and not self._sessions.exists(key):
                return False
            self._sessions.save(key, memory, commit, question, answer, before, name, within)
            return True

    @served("GET", Route.SESSIONS, Need.READ)
    async def sessions(self, scope: Scope | None = None) -> SessionList:
        """List the sessions of deep questions, by name."""
        return await asyncio.to_thread(self._list, scope)

    @served("DELETE", Route.SESSIONS, Need.READ, audited=True)
    async def forget_sessions(
        self, request: RemoveSessionsRequest, scope: Scope | None = None
    ) -> RemoveSessionsResponse:
        """Remove sessions, with their points."""
        return await asyncio.to_thread(self._remove, request.names, scope)

    def in_sight(self, memory: WorkingMemory, scope: Scope | None, snapshot: Snapshot) -> WorkingMemory:
        """Returns the points that the client may see; `snapshot` must be the snapshot of `scope`.

        A restricted client sees a point only if `snapshot` contains all its passages, because any passage may have contributed
        to the wording. A client that sees everything gets all points.
        """
        if not isinstance(scope, ClientScope):
            return memory
        points = (p for p in memory.points if all(snapshot.passage_row(id) is not None for id in p.passages))
        return replace(memory, points=tuple(points))

    def _list(self, scope: Scope | None) -> SessionList:
        self.sweep()
        keys = self._keys(scope)
        snapshot = self._scopes.memory(scope).snapshot if scope is not None and keys else self._store.snapshot()
        entries = [self._entry(key, scope, snapshot) for key in keys]
        return SessionList(sessions=sorted(entries, key=lambda entry: (entry.name, str(entry.scope or ""))))

    def _keys(self, scope: Scope | None) -> list[str]:
        """Returns the keys of the sessions of the client that `scope` belongs to."""
        owner = _owner(scope)
        return [key for key in self._sessions.keys() if _owner_of(key) == owner]  # noqa: SIM118 - no mapping

    def _remove(self, names: Sequence[str], scope: Scope | None) -> RemoveSessionsResponse:
        """Removes the sessions with these names, in all scopes of the client."""
        names = [self.name(name) for name in names]
        with self._writing:  # a concurrent sweep would write back a session that it has read
            by_name: dict[str, list[str]] = {}
            for key in self._keys(scope):
                by_name.setdefault(self._name_of(key), []).append(key)
            missing = [name for name in names if not sum(self._sessions.remove(key) for key in by_name.get(name, ()))]
        return RemoveSessionsResponse(removed=len(names) - len(missing), missing=missing)

    def _name_of(self, key: str) -> str:
        if not key.startswith("~"):
            return key
        try:
            session = self._sessions.load(key)
        except SessionDamaged:
            session = None
        return session.name if session is not None else key

    def _entry(self, key: str, scope: Scope | None, snapshot: Snapshot) -> SessionEntry:
        try:
            session = self._sessions.load(key)
            if session is None:  # removed meanwhile
                return SessionEntry(name=key, error="the session was removed")
            memory = self.in_sight(memory_from_json(session.memory), scope, snapshot)
            points = [point.description for point in memory.points]
        except (SessionDamaged, BadWorkingMemory) as error:
            return SessionEntry(name=key, error=str(error))
        # Omit answers for restricted clients: old answers do not record their passages, so the client's right to see them is
        # unknown.
        with_answers = not isinstance(scope, ClientScope)
        return SessionEntry(
            name=session.name,
            scope=None if session.scope is None else Scope.model_validate_json(session.scope),
            commit=session.commit,
            created_at=utc_time(session.created),
            used_at=utc_time(session.used),
            expires_at=utc_time(session.used + self._keep_s()),
            points=points,
            questions=[
                SessionQuestion(
                    question=each.question,
                    answer=each.answer if with_answers else "",
                    commit=each.commit,
                    time=datetime.fromtimestamp(each.time, UTC),
                )
                for each in session.questions
            ],
        )

    def sweep(self) -> None:
        """Removes expired sessions, and points without living passages.

        So no content of a removed document survives in a session. Errors in a session are logged, not raised.
        """
        for key in self._sessions.keys():  # noqa: SIM118 - no mapping
            with self._writing:
                self._sweep(key)

    def _sweep(self, key: str) -> None:
        try:
            session = self._sessions.load(key)
            if session is None:
                return
            if self._sessions.expired(session, self._keep_s()):
                self._sessions.remove(key)
                log.info("session_expired", session=session.name)
                return
            memory = memory_from_json(session.memory)
            now = self._store.snapshot()  # taken after the session was read, so never older
            # A point's passages determine whether a restricted client may see the point, so keep all of them or drop the point.
            supported = drop_unsupported_points(memory, now, wholly=_owner_of(key) != "")
            if supported != memory:
                dropped = len(memory.points) - len(supported.points)
                self._sessions.keep(key, session, memory_to_json(supported), dropped)
        except (SessionDamaged, BadWorkingMemory, OSError) as error:
            log.warning("session_unreadable", session=key, error=error)


def drop_unsupported_points(memory: WorkingMemory, snapshot: Snapshot, wholly: bool = False) -> WorkingMemory:
    """Returns the points, limiting their passages to `snapshot`. Drops points without passages.

    With `wholly`, drops every point that has lost a passage. Unlike a question, ignores the points' entities: the graph may
    lack them while a passage awaits the model.
    """
    points = []
    for point in memory.points:
        passages = tuple(id for id in point.passages if snapshot.passage_row(id) is not None)
        if passages and not (wholly and len(passages) < len(point.passages)):
            points.append(replace(point, passages=passages))
    return replace(memory, points=tuple(points))
