"""`scope`: limits a request to some documents. The request sees the memory that these documents alone would make."""

import operator
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.functional_validators import BeforeValidator
from pydantic_core import PydanticCustomError

from daemon.contract.base import Request, Response, Timestamp

SCOPE_TERMS_MAX = 1_000
"""Maximum prefixes, labels or conditions of one scope."""

Prefix = Annotated[str, StringConstraints(min_length=1, max_length=32_768)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"\S")]


class Scope(Request):
    """Limits a request to some documents; all given conditions must hold, and an empty scope is the whole memory. `in`: the URI
    begins with one of these texts, or the file is at or below one of these absolute paths. `source`: the source's name in
    `status`. `labels`: the document, or its source, has one of them. `where`: keys and values that the metadata must contain.
    `since`, `until`: the range of `published_at`, or of the last change if the document has none.
    """

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    in_: tuple[Prefix, ...] = Field(default=(), alias="in", max_length=SCOPE_TERMS_MAX, exclude_if=operator.not_)
    source: str | None = Field(default=None, min_length=1, exclude_if=operator.not_)
    labels: tuple[Label, ...] = Field(default=(), max_length=SCOPE_TERMS_MAX, exclude_if=operator.not_)
    where: dict[str, str] = Field(default_factory=dict, max_length=SCOPE_TERMS_MAX, exclude_if=operator.not_)
    since: Timestamp | None = Field(default=None, exclude_if=operator.not_)
    until: Timestamp | None = Field(default=None, exclude_if=operator.not_)


class ClientScope(Scope):
    """A request's scope, limited to what one client sees: documents with one of the labels `visible`.

    No request can contain a ClientScope: it is made from the request's scope after the client was identified.
    """

    visible: tuple[str, ...]
    client: str
    """The client's name: two clients with the same labels share no session."""

    def without_conditions(self) -> "ClientScope":
        """Returns the scope of everything that the client sees, without the request's conditions."""
        return ClientScope(visible=self.visible, client=self.client)


def _from_json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return Scope.model_validate_json(value)
    except ValueError as error:
        raise PydanticCustomError("scope", "{reason}", {"reason": _reason(error)}) from None


def _reason(error: ValueError) -> str:
    errors = getattr(error, "errors", None)
    found = errors()[0] if errors is not None else {"loc": (), "msg": str(error)}
    place = ".".join(str(part) for part in found["loc"])
    return f"{place}: {found['msg']}" if place else str(found["msg"])


ScopeParameter = Annotated[
    Scope,
    BeforeValidator(_from_json, json_schema_input_type=Scope),
]
"""A scope in a query string, as JSON: `{"in": ["/srv/drive/hr"]}`."""


class ScopeCount(Response):
    """A source, label or folder, and its number of documents."""

    name: str
    documents: int


class ScopeList(Response):
    """What a scope may name: sources, labels (of documents and of their sources), and folders."""

    sources: list[ScopeCount]
    labels: list[ScopeCount]
    folders: list[ScopeCount]
