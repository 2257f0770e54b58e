"""Positions in the stream of added documents, as a client has them that sees only some documents.

The inbox numbers the requests of all clients one after the other. A client that got those numbers could count what others
add, and could ask how far the memory is with them. So such a client gets each number encrypted: the encrypted numbers have no
order, and a number that the client was not given names nothing.
"""

import os
import secrets
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from store.backup.local import POSITIONS_KEY
from store.durable_files import durable_file

KEY_BYTES = 32

HALF_BITS = 26
HALF_MASK = (1 << HALF_BITS) - 1
"""A position has 52 bits, which a JSON number holds exactly."""
ROUNDS = 8
TICKET_LIMIT = 1 << 32
"""Tickets are below this number, so a guessed position is a ticket once in 2**20 guesses."""


class ClientPositions:
    """Encrypts tickets by a Feistel cipher with a key of the store, for each client by its name. On the event loop."""

    def __init__(self, folder: Path) -> None:
        """`folder`: the store's, where the key is kept: positions stay valid over a restart."""
        self._path = folder / POSITIONS_KEY

    def position(self, client: str, ticket: int) -> int:
        """The number by which `client` may name a ticket that it was given."""
        left, right = ticket >> HALF_BITS, ticket & HALF_MASK
        for number in range(ROUNDS):
            left, right = right, left ^ self._mask(client, number, right)
        return left << HALF_BITS | right

    def ticket(self, client: str, position: int) -> int | None:
        """The ticket; None for a number that is no position of the client."""
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
            pass  # it is made anew: earlier positions name nothing then
        key = secrets.token_bytes(KEY_BYTES)
        try:
            with durable_file(self._path) as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(key)
        except OSError:
            pass  # the documents are accepted, so the answer needs a position: this one is valid until hippod stops
        return key
