"""Lists that lie next to the channels of a Slack export: `users.json` with the members, `channels.json` and its siblings."""

from collections.abc import Mapping
from typing import Any

MEMBERS = b"users.json"
"""Names the people that the days of the channels state by their ids."""
_MEMBER_TEXTS = ("title", "status_text", "pronouns", "email", "phone")
_CHANNEL_TEXTS = ("purpose", "topic")


def member_names(value: object) -> dict[str, str]:
    """The name of each member by the id; empty if the value is no list of members."""
    return {str(item["id"]): name for item in _listed(value, "profile") if (name := _names(item)[0])}


def read_list(value: object) -> str | None:
    """A list of members or channels as text, one a line; None for other values."""
    if members := _listed(value, "profile"):
        lines = []
        for item in members:
            first, *others = _names(item)
            more = [*others, *(text for key in _MEMBER_TEXTS if (text := _text(item["profile"].get(key)))), item["id"]]
            lines.append(f"{first} ({'; '.join(more)})")
        return "\n".join(lines)
    if channels := _listed(value, "members"):
        return "\n".join(
            ": ".join(filter(None, (_text(item.get("name")), *(_text(item.get(key)) for key in _CHANNEL_TEXTS))))
            for item in channels
        )
    return None


def _listed(value: object, key: str) -> list[dict[str, Any]]:
    """The items of a list whose items all have an id and the key of their kind."""
    kind = dict if key == "profile" else list
    if not isinstance(value, list) or not all(
        isinstance(item, dict) and isinstance(item.get("id"), str) and isinstance(item.get(key), kind) for item in value
    ):
        return []
    return value


def _names(item: Mapping[str, Any]) -> list[str]:
    """The names of a member, the one that people call them first."""
    profile = item["profile"]
    stated = (item.get("real_name"), profile.get("real_name"), profile.get("display_name"), item.get("name"))
    return list(dict.fromkeys(filter(None, map(_text, stated)))) or [item["id"]]


def _text(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("value")
    return " ".join(value.split()) if isinstance(value, str) else ""
