"""Handles queries with a required position (`after`): waits until the memory has reached it, or reports the present position.

A client that sees only some documents must not learn of a stream that contains other documents. Inbox numbers count the
requests of all clients, so they would reveal how much other clients have added, and how much of this is indexed. So the client
gets encrypted numbers, which have no order. A number that the client did not receive is invalid.
"""

import os
import secrets
import time
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from daemon.contract.query import ADDED_POSITION, QueryRequest
from daemon.contract.scope import ClientScope
from daemon.errors import Invalid, NotReady, TimedOut
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.records import stored_position
from daemon.services.scopes import ScopeService
from daemon.sources.base import Source
from store.backup.local import POSITIONS_KEY
from store.durable_files import durable_file
from store.store import Store

KEY_BYTES = 32

HALF_BITS = 26
HALF_MASK = (1 << HALF_BITS) - 1
"""A position has 52 bits, which a JSON number represents exactly."""
ROUNDS = 8
TICKET_LIMIT = 1 << 32
"""Upper bound of tickets. A guessed position decrypts to a valid ticket with probability 2**-20."""
POLL_S = 0.05
"""Interval between checks of a position. A replica's position changes with its commits, at most several times a second."""


class ClientPositions:
    """Encrypts tickets with a Feistel cipher; the key is a secret of the store and the client's name. Use on the event loop."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the store's folder. It contains the secret, so positions stay valid over restarts."""
        self._path = folder / POSITIONS_KEY

    def position(self, client: str, ticket: int) -> int:
        """Returns the encrypted position for a ticket of `client`."""
        left, right = ticket >> HALF_BITS, ticket & HALF_MASK
        for number in range(ROUNDS):
            left, right = right, left ^ self._mask(client, number, right)
        return left << HALF_BITS | right

    def ticket(self, client: str, position: int) -> int | None:
        """Returns the ticket; None if the number is not a position of `client`."""
        if not 0 <= position < 1 << 2 * HALF_BITS:
            return None
        left, right = position >> HALF_BITS, position & HALF_MASK
        for number in reversed(range(ROUNDS)):
            left, right = right ^ self._mask(client, number, left), left
        ticket = left << HALF_BITS | right
        return ticket if ticket < TICKET_LIMIT else None

    def _mask(self, client: str, number: int, half: int) -> int:
        digest = blake2b(f"{number} {half} {client}".encode("utf-8", "surrogatepass"), key=self._key, digest_size=4)
        return int.from_bytes(digest.digest(), "little") & HALF_MASK

    @cached_property
    def _key(self) -> bytes:
        try:
            key = self._path.read_bytes()
            if len(key) == KEY_BYTES:
                return key
        except OSError:
            pass  # a new key is made, which invalidates earlier positions
        key = secrets.token_bytes(KEY_BYTES)
        try:
            with durable_file(self._path) as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(key)
        except OSError:
            pass  # the documents are accepted already, so return a position that is valid until hippod stops
        return key


class Freshness:
    """Waits for positions. Use on the event loop only."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        scopes: ScopeService,
        positions: ClientPositions,
        sources: Sequence[Source] = (),
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._scopes = scopes
        self._positions = positions
        self._sources = sources

    async def wait(self, request: QueryRequest) -> None:
        """Returns once the memory contains all positions in `after`. After the time limit, raises TimedOut naming the missing
        positions."""
        if not request.after:
            return
        if isinstance(request.scope, ClientScope) and any("://" in key for key in request.after):
            message = "a client that sees only some documents may name topics and `added`, not documents"
            raise Invalid("The query cannot wait for a document.", errors={"after": message})
        until = time.monotonic() + request.after_timeout_s
        while missing := self._missing(request):
            if self._pipeline.intake.stopping:
                raise NotReady("hippod is stopping; try again after its restart")
            left = until - time.monotonic()
            if left <= 0:
                raise TimedOut(
                    f"After {request.after_timeout_s:g} s the memory had not reached the requested position; try again, or "
                    "query without `after`.",
                    errors={f"after.{key}": message for key, message in missing.items()},
                )
            await self._pipeline.intake.changed_within(min(left, POLL_S))

    def _missing(self, request: QueryRequest) -> dict[str, str]:
        """Returns, for each position that is not reached, a message with the present position."""
        found = {}
        client = request.scope if isinstance(request.scope, ClientScope) else None
        for key, requested in (request.after or {}).items():
            at = self._position(key, requested) if client is None else self._position_for(client, key, requested)
            if at is None:
                found[key] = f"position {requested} is not reached; the memory does not contain it"
            elif at < requested:
                found[key] = f"position {requested} is not reached; the memory is at {at}"
        return found

    def _position_for(self, client: ClientScope, key: str, requested: int) -> int | None:
        """Like `_position`, for a client that sees only some documents.

        Also returns None for a stream that the client does not see completely. For added documents, also returns None for a
        position that is not reached, or that the client did not receive.
        """
        if key == ADDED_POSITION:
            ticket = self._positions.ticket(client.client, requested)
            reached = ticket is not None and self._pipeline.inbox.indexed_up_to(ticket) == ticket
            return requested if reached else None
        topic = key.rpartition("/")[0]
        sees = self._scopes.sources(client.without_conditions())
        seen = any(topic in source.topics and sees(source.name) for source in self._sources)
        return self._position(key, requested) if seen else None

    def _position(self, key: str, requested: int) -> int | None:
        """Returns the last position of a stream or document that the memory contains; None if it contains none."""
        if key == ADDED_POSITION:
            return self._pipeline.inbox.indexed_up_to(requested)
        if "://" not in key:
            stored = self._store.positions.get(f"kafka:{key}")
            return None if stored is None else int(stored["offset"]) - 1
        if (position := stored_position(self._store, key)) is not None:
            return position.offset
        document = self._store.document(key)
        about = document.metadata.get("kafka") if document is not None else None
        offset = about.get("offset") if isinstance(about, dict) else None
        return offset if isinstance(offset, int) else None
