"""The texts of a message in a JSON export: its content, and texts that its document leaves out.

Programs store the same text under several keys: as plain text and as formatted pieces. A piece is added only if it has words
that the message does not contain yet.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

_TEXTS = ("text", "content", "parts", "caption", "body", "result")
"""Keys for the content of a message, in order of preference."""
_FURTHER = (
    "attachments", "blocks", "embeds", "poll", "question", "answers", "elements", "fields", "pretext", "value", "description",
    "fallback", "footer", "extracted_content", "place_name", "address", "contact_information", "first_name", "last_name",
    "phone_number", "todo_list", "share", "share_text", "link", "quote", "input",
)  # fmt: skip
"""Keys for further texts of a message, such as the text of an attachment or a poll."""
_INNER = ("title", *_TEXTS, *_FURTHER)
_LABELS = {"contact_information": "Contact: ", "place_name": "Place: "}
_INLINE = frozenset(("text", "link", "user", "channel", "emoji", "usergroup", "broadcast", "date"))
"""Types of the pieces that make up one line in Slack's formatted texts. Spaces between the pieces are part of the
pieces."""
_REFERENCES = {"user_id": "<@{}>", "channel_id": "<#{}>"}
_WORD = re.compile(r"\w+")
_STATEMENT = re.compile(r"[^\W\d_]{2,}[^\w\s]?\s+[^\W\d_]{2,}")
"""Two consecutive words. A text for people has them; an identifier or a type has not."""
_MAX_DEPTH = 12


def message_text(item: Mapping[str, Any]) -> str:
    """Returns the text of a message, with the text of quoted, attached and shared content."""
    lines: list[str] = []
    for keys in (_TEXTS, _FURTHER):
        for key in keys:
            known = _words("\n".join(lines))
            texts = list(_pieces(item[key])) if key in item else []
            label = _LABELS.get(key, "")
            lines += [f"{label}{text}" for text in texts if not known or not _words(text) <= known]
    if origin := item.get("forwarded_from"):
        lines.insert(0, f"Forwarded from {origin}:")
    return "\n".join(lines).strip()


def unread_texts(value: Mapping[str, Any], read: str, skipped: Collection[str]) -> tuple[str, ...]:
    """Returns the texts for people in an object that contain words not in `read`. `skipped` are keys to ignore."""
    known = _words(read)
    found: dict[str, None] = {}
    for text in _strings([inner for key, inner in value.items() if key not in skipped]):
        if _STATEMENT.search(text) and not (words := _words(text)) <= known:
            found[text] = None
            known |= words
    return tuple(found)


def _pieces(value: object) -> Iterator[str]:
    """Yields the texts of a value: one text per item of a list, or one text if the items are pieces of a line."""
    items = value if isinstance(value, list) and not _is_line(value) else [value]
    for item in items:
        if text := _text(item).strip():
            yield text


def _text(value: object, depth: int = 0) -> str:
    if isinstance(value, str):
        return value
    if depth >= _MAX_DEPTH:
        return ""
    if isinstance(value, list):
        joint = "" if _is_line(value) else "\n"
        return joint.join(filter(None, (_text(item, depth + 1) for item in value)))
    if not isinstance(value, dict):
        return ""
    for key, form in _REFERENCES.items():
        if isinstance(value.get(key), str):
            return form.format(value[key])
    if value.get("type") == "emoji":
        return f":{value.get('name') or ''}:"
    if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):  # a field of an embedded card
        return f"{value['name']}: {value['value']}"
    texts: list[str] = []
    for key in _INNER:
        text = _text(value[key], depth + 1) if key in value else ""
        if text and (not texts or not _words(text) <= _words(" ".join(texts))):
            texts.append(text)
    address = next((value[key] for key in ("href", "url") if isinstance(value.get(key), str)), "")
    if value.get("type") in ("link", "text_link") and address and address not in texts:
        return f"{texts[0]} ({address})" if texts else address
    return " ".join(texts)


def _is_line(value: list[Any]) -> bool:
    return any(isinstance(item, str) for item in value) or (
        bool(value) and all(isinstance(item, dict) and item.get("type") in _INLINE for item in value)
    )


def _strings(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _MAX_DEPTH and isinstance(value, list | dict):
        for inner in value if isinstance(value, list) else value.values():
            yield from _strings(inner, depth + 1)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
