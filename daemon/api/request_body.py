"""Reads a request's body within limits of size, time and memory."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Receive

from daemon.api.middleware.request_limits import FairShares
from daemon.api.settings import MIB, ApiLimits
from daemon.errors import BadRequest, Busy, Invalid, TooLarge, TooSlow, UnsupportedMediaType


class BodyDeadline:
    """An ASGI `receive` that raises TooSlow if the client does not send the body in time.

    Only the time spent waiting for the client counts, not the reader's time between two pieces. The deadline ends when the
    body is complete or a response has begun: from then on `receive` waits for the client to disconnect.
    """

    def __init__(self, receive: Receive, limits: ApiLimits, answering: Callable[[], bool]) -> None:
        self._receive = receive
        self._limits = limits
        self._answering = answering
        self._received = 0
        self._waited = 0.0
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole or self._answering():
            return await self._receive()
        allowed = self._limits.body_grace_s + self._received / self._limits.min_bytes_per_s
        began = monotonic()
        try:
            async with asyncio.timeout(allowed - self._waited):
                message = await self._receive()
        except TimeoutError:
            if self._answering():
                return await self._receive()
            raise self._too_slow(allowed) from None
        self._waited += monotonic() - began
        self._received += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        return message

    def _too_slow(self, allowed_s: float) -> TooSlow:
        limits = self._limits
        return TooSlow(
            f"{self._received} bytes of the body arrived in {allowed_s:.0f} s; it must arrive within {limits.body_grace_s:g} s "
            f"and {limits.min_bytes_per_s} bytes a second.",
            headers={"Connection": "close"},
        )


class BodyMemory:
    """Limits the total bytes of request bodies in memory, for all requests of one event loop.

    `BodyReservation.take` raises Busy beyond the limit, or beyond the client's share of it. The share does not apply to a
    client's only body.
    """

    def __init__(self, limit: int, client_share: float = 1.0) -> None:
        self._shares = FairShares(limit, client_share)
        self._bodies: Counter[str] = Counter()

    @contextmanager
    def reservation(self, client: str) -> Iterator["BodyReservation"]:
        reservation = BodyReservation(self, client)
        self._bodies[client] += 1
        try:
            yield reservation
        finally:
            self._shares.release(client, reservation.bytes)
            self._bodies[client] -= 1
            if not self._bodies[client]:
                del self._bodies[client]

    def take(self, client: str, count: int) -> None:
        if self._shares.fits(client, count, first=self._bodies[client] == 1):
            self._shares.take(client, count)
        elif self._shares.has_room(count):
            raise Busy(
                "Too many large requests of this client arrive at once, and the remaining capacity ([api] client_share) "
                "is for other clients; try again in a moment.",
                of="bodies of one client",
                retry_after_s=5,
            )
        else:
            raise Busy(
                "Too many large requests arrive at the same time; try again in a moment.", of="bodies", retry_after_s=5
            )


class BodyReservation:
    """The bytes of `BodyMemory` that one request holds."""

    def __init__(self, memory: BodyMemory, client: str) -> None:
        self._memory = memory
        self._client = client
        self.bytes = 0

    def take(self, count: int) -> None:
        self._memory.take(self._client, count)
        self.bytes += count


def body_media_type(request: Request, allowed: Collection[str]) -> str:
    """Returns the body's media type, or the first of `allowed` if none is sent. Raises UnsupportedMediaType for others."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not media_type:
        return next(iter(allowed))
    if media_type not in allowed:
        choices = " or ".join(allowed)
        raise UnsupportedMediaType(f"The body is sent as {media_type[:100]!r}; send it with Content-Type: {choices}.")
    return media_type


def has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


async def body_chunks(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Yields the body's pieces as they arrive. Raises TooLarge as soon as the body is known to be longer than `limit`."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        if received > limit:
            raise _too_large(limit)
        if chunk:
            yield chunk


def _too_large(limit: int) -> TooLarge:
    size = f"{limit // MIB} MiB" if limit >= MIB else f"{limit} bytes"
    return TooLarge(f"The body is longer than {size}, the most that this route takes; send it in several requests.")


async def read_body(request: Request, reservation: BodyReservation, limits: ApiLimits) -> bytearray:
    body = bytearray()
    async for chunk in body_chunks(request, limits.json_bytes):
        reservation.take(len(chunk))
        body += chunk
    return body


async def read_json_lines(request: Request, reservation: BodyReservation, limits: ApiLimits) -> list[dict[str, Any]]:
    """Reads a body of JSON lines; returns one object per line. Empty lines are skipped.

    Raises TooLarge if a line is longer than a JSON body may be, or at the first document beyond `documents_per_request`: a
    body can contain millions of documents, and all of them would be refused.
    """
    found: list[dict[str, Any]] = []
    number = 0
    rest = bytearray()
    async for chunk in body_chunks(request, limits.lines_bytes):
        reservation.take(len(chunk))
        rest += chunk
        if b"\n" not in chunk:
            if len(rest) > limits.json_bytes:
                raise TooLarge(
                    f"Line {number + 1} is longer than {limits.json_bytes // MIB or 1} MiB; split the document."
                )
            continue
        *lines, last = rest.split(b"\n")
        rest = last
        for line in lines:
            number += 1
            _append_document(found, line, number, limits.documents_per_request)
    _append_document(found, rest, number + 1, limits.documents_per_request)
    return found


def _append_document(found: list[dict[str, Any]], line: bytes | bytearray, number: int, max_documents: int) -> None:
    if not line.strip():
        return
    if len(found) >= max_documents:
        raise TooLarge(
            f"The request has more than {max_documents} documents, which is the limit of waiting documents ([daemon] "
            "inbox_documents); none was accepted: send them in several requests."
        )
    try:
        value = from_json(line, allow_inf_nan=False)
    except ValueError as error:
        raise BadRequest(f"Line {number} is not JSON: {error}.") from None
    if not isinstance(value, dict):
        wrong = {f"line {number}": "must be a JSON object, one document a line"}
        raise Invalid(f"Line {number} is not a JSON object.", errors=wrong)
    found.append(value)
