"""Sessions: the state that one `ask --deep` question leaves for the next, one small file each in the store's folder.

Sessions are not a table for three reasons: Each question replaces its session completely. A session belongs to no commit.
Statements of a removed document must leave the disk at once, whereas an append-only table keeps rows until the next purge. Each
file is written under a temporary name, synced, and renamed, so after a crash either the old or the new file is complete.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from store.durable_files import durable_file, sync
from store.errors import StoreError
from store.untrusted_names import inside

FORMAT = 1
FOLDER = "sessions"
QUESTIONS = 100
"""Maximum number of past questions that a session keeps."""


class SessionDamaged(StoreError):
    """A session's file is unreadable. The message names the session and what to do."""


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """A past question of a session, with its short answer, its commit and its time (Unix seconds)."""

    question: str
    answer: str
    commit: int
    time: float


@dataclass(frozen=True, slots=True)
class Session:
    """One session. `memory` is JSON of the answering method; the store does not interpret it.

    `commit` is the commit of the last question. `dropped` counts the entries removed from the memory since then because no
    document states them any more.
    """

    name: str
    commit: int
    created: float
    used: float
    memory: Mapping[str, Any]
    questions: tuple[PastQuestion, ...] = ()
    dropped: int = 0
    scope: str | None = None
    """The part of the memory to which the session is limited, as its client wrote it."""


class Sessions:
    """The sessions of one store. A key is the session's name or begins with `~`.

    Thread-safe. If two threads change one session concurrently, the later change wins.
    """

    def __init__(
        self, store: Path, clock: Callable[[], float] = time.time, check: Callable[[], None] = lambda: None
    ) -> None:
        """`check` raises OSError if the store must not be written at present."""
        self._check = check
        self._folder = store / FOLDER
        self._clock = clock

    def load(self, key: str) -> Session | None:
        """Returns the session, or None if it does not exist. Raises SessionDamaged."""
        path = self._path(key)
        name = key
        try:
            written = json.loads(path.read_bytes())
            if written["format"] != FORMAT:
                raise ValueError(f"it has format {written['format']}, this hippod reads {FORMAT}")
            questions = tuple(PastQuestion(**each) for each in written["questions"])
            name = str(written.get("name", key))
            return Session(
                name,
                written["commit"],
                written["created"],
                written["used"],
                dict(written["memory"]),
                questions,
                written["dropped"],
                written.get("scope"),
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise SessionDamaged(
                f'the session "{name}" cannot be read ({type(error).__name__}: {error}); '
                f"remove it (hippoctl sessions rm {name}) and start a new one"
            ) from error

    def save(
        self,
        key: str,
        memory: Mapping[str, Any],
        commit: int,
        question: str,
        answer: str,
        before: Session | None,
        name: str | None = None,
        scope: str | None = None,
    ) -> Session:
        """Adds a question to the session and writes it durably. Raises OSError.

        `before`: the session that this question continues, or None. `name`: the session's name; by default the key.
        """
        now = self._clock()
        latest = PastQuestion(question, answer, commit, now)
        earlier = before.questions if before else ()
        created = before.created if before else now
        session = Session(name or key, commit, created, now, memory, (*earlier, latest)[-QUESTIONS:], scope=scope)
        self._write(key, session)
        return session

    def keep(self, key: str, session: Session, memory: Mapping[str, Any], dropped: int) -> None:
        """Writes the session with `memory`, from which `dropped` entries were removed; the session's time of last use stays.
        Raises OSError."""
        self._write(key, replace(session, memory=memory, dropped=session.dropped + dropped))

    def _write(self, key: str, session: Session) -> None:
        self._check()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._path(key)
        with durable_file(path) as file:
            file.write(json.dumps({"format": FORMAT, **asdict(session)}, ensure_ascii=False).encode())

    def exists(self, key: str) -> bool:
        return self._path(key).exists()

    def remove(self, key: str) -> bool:
        """Removes a session; returns whether it existed."""
        try:
            self._path(key).unlink()
        except FileNotFoundError:
            return False
        sync(self._folder)
        return True

    def keys(self) -> list[str]:
        """Returns the keys, sorted."""
        return sorted(path.stem for path in self._folder.glob("[!.]*.json"))

    def expired(self, session: Session, keep_s: float) -> bool:
        """Whether the session has been unused for more than `keep_s` seconds."""
        return self._clock() - session.used > keep_s

    def _path(self, key: str) -> Path:
        if not key or "/" in key or key.startswith("."):
            raise ValueError(f"{key!r} cannot be a session's key")
        return inside(self._folder, f"{key}.json")
