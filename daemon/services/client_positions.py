"""Positions in the stream of added documents for clients that see only some documents.

The inbox numbers the requests of all clients consecutively. These numbers would reveal how much other clients add, and how far
the memory is with it. So a restricted client gets encrypted numbers: they have no order, and numbers that the client was not
given are invalid.
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
"""A position has 52 bits, because a JSON number represents integers of that size exactly."""
ROUNDS = 8
TICKET_LIMIT = 1 << 32
"""Upper bound of tickets. A guessed position is a valid ticket with probability 2**-20."""


class ClientPositions:
    """Encrypts tickets with a Feistel cipher, keyed by a secret of the store and the client's name. Use on the event loop."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the store's. It contains the key, so that positions stay valid over restarts."""
        self._path = folder / POSITIONS_KEY

    def position(self, client: str, ticket: int) -> int:
        """Returns the position that stands for a ticket of `client`."""
        left, right = ticket >> HALF_BITS, ticket & HALF_MASK
        for number in range(ROUNDS):
            left, right = right, left ^ self._mask(client, number, right)
        return left << HALF_BITS | right

    def ticket(self, client: str, position: int) -> int | None:
        """Returns the ticket, or None if the number is not a position of `client`."""
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
