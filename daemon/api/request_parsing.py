"""Reads a request's body within limits of size, time and memory, and parses requests into models.

pydantic's errors become problems, which name the field, the error and the allowed values.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from time import monotonic
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Receive

from daemon.api.middleware.request_limits import FairShares
from daemon.api.settings import ApiLimits
from daemon.config_types.values import MiB
from daemon.contract.base import FieldError, field_path
from daemon.contract.http.routes import JSON, SESSION_PATTERN
from daemon.contract.query import NOT_BLANK
from daemon.contract.transfer import BACKUP_PLACE
from daemon.errors import BadRequest, Busy, Invalid, RequestError, TooLarge, TooSlow, UnsupportedMediaType

Model = TypeVar("Model", bound=BaseModel)
FIELD_ERRORS_MAX = 20
"""Maximum number of wrong fields in one response."""
PATTERN_MESSAGES = {
    NOT_BLANK: "must contain more than white space",
    BACKUP_PLACE: "must be an absolute path, s3://bucket/prefix, or file:///folder",
    SESSION_PATTERN: "must be up to 60 letters, digits, underscores, dots and dashes, and not begin with a dot or dash",
}
UNION_FIELDS = ("as_of",)
"""Fields whose values may have several types."""


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

    `BodyReservation.take` raises Busy beyond the limit, or beyond the client's share of it. A client's only body may exceed the
    share.
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
                resource="bodies of one client",
                retry_after_s=5,
            )
        else:
            raise Busy(
                "Too many large requests arrive at the same time; try again in a moment.",
                resource="bodies",
                retry_after_s=5,
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
    size = f"{limit // MiB} MiB" if limit >= MiB else f"{limit} bytes"
    return TooLarge(f"The body is longer than {size}, the limit of this route; send less, or raise its limit in [api].")


async def read_json_lines(request: Request, reservation: BodyReservation, limits: ApiLimits) -> list[dict[str, Any]]:
    """Reads a body of JSON lines; returns one object per line. Empty lines are skipped.

    Raises TooLarge if a line is longer than a JSON body may be, or at the first document beyond `documents_per_request`,
    without reading the possibly millions of further documents.
    """
    found: list[dict[str, Any]] = []
    number = 0
    rest = bytearray()
    async for chunk in body_chunks(request, limits.lines_bytes):
        reservation.take(len(chunk))
        rest += chunk
        if b"\n" not in chunk:
            if len(rest) > limits.request_bytes:
                raise TooLarge(
                    f"Line {number + 1} is longer than {limits.request_bytes // MiB or 1} MiB; split the document."
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
        errors = {f"line {number}": "must be a JSON object, one document a line"}
        raise Invalid(f"Line {number} is not a JSON object.", errors=errors)
    found.append(value)


async def read_model(request: Request, model: type[Model], reservation: BodyReservation, limits: ApiLimits) -> Model:
    """Parses the body as `model`; an empty body is parsed as `{}`."""
    body = bytearray()
    async for chunk in body_chunks(request, limits.request_bytes):
        reservation.take(len(chunk))
        body += chunk
    if not body.strip():
        return parse_model(b"{}", model)
    body_media_type(request, [JSON])
    return parse_model(body, model)


def parse_model(body: bytes | bytearray, model: type[Model]) -> Model:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise validation_problem(error.errors(include_url=False, include_input=False), model) from None


def read_query_string(request: Request, model: type[Model]) -> Model:
    """Parses the query string as `model`. Raises Invalid if a parameter is given twice."""
    values: dict[str, str] = {}
    for key, value in request.query_params.multi_items():
        if key in values:
            raise Invalid(f"The parameter {key!r} is given more than once.", errors={key: "is given more than once"})
        values[key] = value
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise validation_problem(error.errors(include_url=False, include_input=False), model) from None


def validation_problem(found: Sequence[Mapping[str, Any]], model: type[BaseModel] | None = None) -> RequestError:
    if found[0]["type"] == "json_invalid":
        return BadRequest(f"The body is not JSON: {found[0]['ctx']['error']}.")
    errors = [_field_error(one, model) for one in found[:FIELD_ERRORS_MAX]]
    first = errors[0]
    more = f" ({len(found) - 1} more in errors)" if len(found) > 1 else ""
    allowed = f" Allowed: {', '.join(first.allowed)}." if first.allowed else ""
    return Invalid(f"{first.field or 'The body'}: {first.message}{more}.{allowed}", errors=errors)


def _field_error(found: Mapping[str, Any], model: type[BaseModel] | None) -> FieldError:
    loc: tuple[int | str, ...] = tuple(found["loc"])
    if loc and loc[0] in UNION_FIELDS:
        loc = loc[:1]  # pydantic appends the type that did not match; the client knows only the field
    kind = str(found["type"])
    if kind == "extra_forbidden":
        known = sorted(model.model_fields) if model else None
        return FieldError(field=field_path(loc), message="is not a known field", allowed=known)
    if kind == "enum":
        return FieldError(field=field_path(loc), message="is not an allowed value", allowed=_choices(model, loc))
    if kind == "missing":
        return FieldError(field=field_path(loc), message="is required")
    if kind == "string_pattern_mismatch":
        return FieldError(field=field_path(loc), message=PATTERN_MESSAGES[found["ctx"]["pattern"]])
    message = str(found["msg"])
    return FieldError(field=field_path(loc), message=message[:1].lower() + message[1:])


def _choices(model: type[BaseModel] | None, loc: tuple[int | str, ...]) -> list[str] | None:
    info = model.model_fields.get(str(loc[0])) if model and loc else None
    if info is None:
        return None
    for kind in (info.annotation, *get_args(info.annotation)):
        if isinstance(kind, type) and issubclass(kind, Enum):
            return [str(member.value) for member in kind]
    return None
