"""`[[client]]`: the clients, the documents that they see, and what they may do."""

import grp
import pwd
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, model_validator

from daemon.config_types.path_validators import token_in
from daemon.config_types.values import Labels, OptionalPath, OptionalText, Section, at

ALL_LABELS = "*"
_NAME = re.compile(r"\w[\w.@-]{0,99}", re.ASCII)
_RIGHTS = ("read", "write", "admin")


def _user(name: str | None) -> str | None:
    if name is not None and user_id(name) is None:
        raise ValueError("a user of this machine, or the number of one")
    return name


def _group(name: str | None) -> str | None:
    if name is not None and group_id(name) is None:
        raise ValueError("a group of this machine, or the number of one")
    return name


def user_id(name: str) -> int | None:
    """`name` may also be a number. Returns None if there is no such user."""
    try:
        return int(name) if name.isascii() and name.isdigit() else pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):
        return None


def group_id(name: str) -> int | None:
    """`name` may also be a number. Returns None if there is no such group."""
    try:
        return int(name) if name.isascii() and name.isdigit() else grp.getgrnam(name).gr_gid
    except (KeyError, ValueError):
        return None


def _name(name: str | None) -> str | None:
    if name is not None and not _NAME.fullmatch(name):
        raise ValueError("up to 100 letters, digits, dots, dashes, underscores and @, beginning with a letter or digit")
    return name


def _rights(value: Any) -> Any:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, list | tuple) or not value or any(each not in _RIGHTS for each in value):
        raise ValueError('a list of "read", "write" and "admin", at least one')
    return tuple(value)


class ClientSection(Section):
    name: Annotated[OptionalText, AfterValidator(_name)] = None
    """Name in the log and in refusals; default: the user, the group or the token file's name."""
    token_file: Annotated[OptionalPath, AfterValidator(token_in)] = None
    """File with the bearer token that identifies the client, on TCP and on the socket."""
    user: Annotated[OptionalText, AfterValidator(_user)] = None
    """User whose programs connect to the Unix socket."""
    group: Annotated[OptionalText, AfterValidator(_group)] = None
    """Group whose members' programs connect to the Unix socket."""
    labels: Labels = ()
    """The client sees documents with one of these labels; ["*"]: all documents."""
    rights: Annotated[tuple[Literal["read", "write", "admin"], ...], BeforeValidator(_rights)] = ("read",)
    """What the client may do with these documents; "admin" concerns the whole memory."""

    @model_validator(mode="after")
    def _is_identifiable(self) -> "ClientSection":
        if self.token_file is None and self.user is None and self.group is None:
            raise at("token_file", "must be set: a client needs token_file, user or group")
        if self.user is not None and self.group is not None:
            raise at("group", "user or group, not both; write a [[client]] for each")
        if not _NAME.fullmatch(self.client_name):
            raise at("name", "up to 100 letters, digits, dots, dashes, underscores and @")
        if "admin" in self.rights and not self.sees_all:
            raise at("rights", 'without "admin", which concerns the whole memory; or set labels = ["*"]')
        if ALL_LABELS in self.labels and len(self.labels) > 1:
            raise at("labels", '["*"] alone, or labels without "*"')
        return self

    @property
    def client_name(self) -> str:
        stem = self.token_file.stem if self.token_file is not None else ""
        return self.name or self.user or self.group or stem

    @property
    def sees_all(self) -> bool:
        return ALL_LABELS in self.labels
