"""Sessions: what one question of several steps leaves for the next. One small file each, in the folder of the store.

Not a table: a session is replaced as a whole by each of its questions, belongs to no commit (a version of it in every
commit's row would tie questions to indexing), and what it says of a removed document must leave the disk at once, which an
append-only table does at the next purge. A file is written beside the old one, synced, and renamed: after a crash the one
or the other is there, whole.
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
"""Questions that a session remembers having been asked, the last ones."""


class SessionDamaged(StoreError):
    """A session's file cannot be read. The message says which and what to do."""


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """A question of a session: when (Unix seconds), at which commit, and its bare answer."""

    question: str
    answer: str
    commit: int
    time: float


@dataclass(frozen=True, slots=True)
class Session:
    """`memory` is JSON of the method's own, of which the store knows nothing. `commit` is that of the last question, `dropped`
    how much of the memory was taken out since, because no document says it any more."""

    name: str
    commit: int
    created: float
    used: float
    memory: Mapping[str, Any]
    questions: tuple[PastQuestion, ...] = ()
    dropped: int = 0
    scope: str | None = None
    """The part of the memory that it is of, as whoever asks in it writes that down."""


class Sessions:
    """The sessions of one store, each under a key that is its name or begins with `~`. Callable from any thread; who changes
    one session twice at once keeps the later change."""

    def __init__(
        self, store: Path, clock: Callable[[], float] = time.time, check: Callable[[], None] = lambda: None
    ) -> None:
        """`check` raises OSError if nothing may be written now."""
        self._check = check
        self._folder = store / FOLDER
        self._clock = clock

    def load(self, key: str) -> Session | None:
        """None where there is none. Raises SessionDamaged."""
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
        """Durable when it returns. `before` is the session that this question continued; `name` is the key where there is no
        other. Raises OSError."""
        now = self._clock()
        asked = PastQuestion(question, answer, commit, now)
        earlier = before.questions if before else ()
        created = before.created if before else now
        session = Session(name or key, commit, created, now, memory, (*earlier, asked)[-QUESTIONS:], scope=scope)
        self._write(key, session)
        return session

    def keep(self, key: str, session: Session, memory: Mapping[str, Any], dropped: int) -> None:
        """The session with less in its memory, as old as it was. Raises OSError."""
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
        """Whether there was one."""
        try:
            self._path(key).unlink()
        except FileNotFoundError:
            return False
        sync(self._folder)
        return True

    def keys(self) -> list[str]:
        """Sorted."""
        return sorted(path.stem for path in self._folder.glob("[!.]*.json"))

    def expired(self, session: Session, keep_s: float) -> bool:
        """Whether nobody has used it for that long."""
        return self._clock() - session.used > keep_s

    def _path(self, key: str) -> Path:
        if not key or "/" in key or key.startswith("."):
            raise ValueError(f"{key!r} cannot be a session's key")
        return inside(self._folder, f"{key}.json")
