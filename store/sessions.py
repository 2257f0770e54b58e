"""Sessions: the state that one `ask --deep` question leaves for the next. One small file each, in the store's folder.

Sessions are not a table. Each question replaces its session as a whole; a session belongs to no commit (a version in every
commit's row would tie questions to indexing); and statements of a removed document must leave the disk at once, while an
append-only table keeps rows until the next purge. A file is written under another name, synced, and renamed, so a crash leaves
either the old or the new file, complete.
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
"""Number of a session's last questions that are kept."""


class SessionDamaged(StoreError):
    """A session's file cannot be read. The message says which and what to do."""


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """A question of a session: its time (Unix seconds), its commit, and its short answer."""

    question: str
    answer: str
    commit: int
    time: float


@dataclass(frozen=True, slots=True)
class Session:
    """A session. `memory` is JSON of the answering method, which the store does not interpret.

    `commit` is that of the last question; `dropped` counts entries removed from the memory since, because no document states
    them any more.
    """

    name: str
    commit: int
    created: float
    used: float
    memory: Mapping[str, Any]
    questions: tuple[PastQuestion, ...] = ()
    dropped: int = 0
    scope: str | None = None
    """The part of the memory that the session is limited to, as written by its caller."""


class Sessions:
    """The sessions of one store. A key is the session's name or begins with `~`.

    Thread-safe. If one session is changed twice at once, the later change is kept.
    """

    def __init__(
        self, store: Path, clock: Callable[[], float] = time.time, check: Callable[[], None] = lambda: None
    ) -> None:
        """`check` raises OSError if nothing may be written now."""
        self._check = check
        self._folder = store / FOLDER
        self._clock = clock

    def load(self, key: str) -> Session | None:
        """Returns the session; None if it does not exist. Raises SessionDamaged."""
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

        `before`: the session that this question continued. `name`: by default the key.
        """
        now = self._clock()
        asked = PastQuestion(question, answer, commit, now)
        earlier = before.questions if before else ()
        created = before.created if before else now
        session = Session(name or key, commit, created, now, memory, (*earlier, asked)[-QUESTIONS:], scope=scope)
        self._write(key, session)
        return session

    def keep(self, key: str, session: Session, memory: Mapping[str, Any], dropped: int) -> None:
        """Writes the session with fewer entries in its memory, without changing its time of use. Raises OSError."""
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
        """Whether the session was not used for more than `keep_s` seconds."""
        return self._clock() - session.used > keep_s

    def _path(self, key: str) -> Path:
        if not key or "/" in key or key.startswith("."):
            raise ValueError(f"{key!r} cannot be a session's key")
        return inside(self._folder, f"{key}.json")
