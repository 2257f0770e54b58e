"""Chat exports in JSON (ChatGPT, Claude, Telegram, Slack, Discord, Messenger, Google Chat, model APIs) and Google Keep notes.

The exports differ mostly in the names of their keys. Each tuple below lists the keys for one value.
Programs store the same text under several keys: as plain text and as formatted pieces. A piece is added only if it has words
that the message does not contain yet.
"""

import html
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from consumers.parsing.conversations.days import Conversation, Message

_MESSAGES = ("messages", "chat_messages")
_NAMES = ("name", "title", "chat_name", "threadName")
_KEYS = ("conversation_id", "uuid", "thread_path", "id")
_AUTHORS = (
    "from", "sender_name", "senderName", "sender", "author", "creator", "user_profile", "actor", "username", "user", "bot_id",
    "role",
)  # fmt: skip
_PERSON = ("real_name", "nickname", "display_name", "name", "role")
_TIMES = (
    "date_unixtime", "ts", "timestamp_ms", "timestamp", "created_at", "created_date", "create_time", "createDate", "date",
)  # fmt: skip
_FILES = ("files", "file", "photo", "photos", "videos", "audio_files", "media", "attachments", "attached_files")
_FILE_NAMES = ("original_name", "title", "name", "fileName", "file_name", "uri", "export_name")
_IDENTITIES = ("id", "ts", "uuid")
_ANSWERED = ("reply_to_message_id", "thread_ts", "parent_message_uuid")
_SKIPPED = (*_TIMES, *_AUTHORS, "root")
"""Keys of a message whose texts are read separately or belong to another message."""
_EXAMINED = 50
"""Number of items at the beginning of a list that are examined for messages."""
_PARTS_OF_LINKS = re.compile(r"<([@#!]?)([^<>|]{1,500})(?:\|([^<>]{0,500}))?>")
_WEEKDAY_DATE = re.compile(r"(?:\w+, )?(\w+ \d{1,2}, \d{4}) at (\d{1,2}:\d{2}:\d{2})\s*([AP]M)? UTC")

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
"""Two consecutive words, which distinguish a text for people from an identifier or a type."""
_MAX_DEPTH = 12


def read_conversations(value: object, channel: str, stem: str) -> list[Conversation] | None:
    """Returns the conversations of a JSON value, or None if the value is not a chat export.

    `channel` is the name of a Slack conversation. `stem` is the name of any other conversation without a name.
    """
    if isinstance(value, list) and value:
        items = _items(value)
        if _are_messages(value, _is_slack_message):
            people = _slack_people(items)
            messages = [_slack_message(item, people) for item in items if _is_slack_message(item)]
            return [Conversation(channel, channel, messages)]
        if _are_messages(value, _is_role_message):
            return [Conversation(stem, stem, [_message(item) for item in items])]
        if (
            len(items) == len(value)
            and any(_is_conversation(item) for item in value)
            and all(_is_conversation(item) or not item.get("text") for item in value)
        ):
            return [_conversation(item, stem) for item in value if _is_conversation(item)]
        return None
    if not isinstance(value, dict):
        return None
    if _is_conversation(value):
        return [_conversation(value, stem)]
    chats = [chat for key in ("chats", "left_chats") for chat in _items(_inner(value, key, "list"))]
    found = [_conversation(chat, stem) for chat in chats if _is_conversation(chat)]
    if found:  # the first chat's account lists other content of the export, such as the contacts
        found[0] = replace(found[0], left_out=(*found[0].left_out, *unread_texts(value, "", ("chats", "left_chats"))))
    return found or None


def line_message(value: object) -> Message | None:
    """Returns the message if a JSON line contains one (`role` and `content`, or `sender` and `body`), else None."""
    if isinstance(value, dict) and (_is_role_message(value) or (_is_message(value) and "body" in value)):
        return None if "text" in value else _message(value)
    return None


def keep_note(value: object) -> dict[str, Any] | None:
    """Returns a Google Keep note as a JSON document with "title" and "text", or None for other values."""
    if not isinstance(value, dict) or "text" in value or not {"isTrashed", "userEditedTimestampUsec"} & value.keys():
        return None
    lines = [value["textContent"]] if isinstance(value.get("textContent"), str) else []
    for item in _items(value.get("listContent")):
        mark = "x" if item.get("isChecked") else " "
        lines.append(f"[{mark}] {item.get('text') or ''}")
    lines += [
        " ".join(str(item[key]) for key in ("title", "description", "url") if item.get(key))
        for item in _items(value.get("annotations"))
    ]
    document: dict[str, Any] = {"title": str(value.get("title") or "")[:2000], "text": "\n".join(lines)}
    if tags := [str(item["name"]) for item in _items(value.get("labels")) if item.get("name")]:
        document["tags"] = tags
    attached = [str(item["filePath"]) for item in _items(value.get("attachments")) if item.get("filePath")]
    people = [str(item["email"]) for item in _items(value.get("sharees")) if item.get("email")]
    document |= {key: found for key, found in (("attachments", attached), ("shared_with", people)) if found}
    edited = value.get("createdTimestampUsec", value.get("userEditedTimestampUsec"))
    if isinstance(edited, int) and (moment := _moment(edited / 1e6)):
        document["published_at"] = moment.isoformat()
    if not document["text"].strip() and document["title"]:
        document["text"] = document["title"]
    return document


def _is_conversation(value: Mapping[str, Any]) -> bool:
    if isinstance(value.get("mapping"), dict):
        return any(isinstance(node, dict) and "message" in node for node in value["mapping"].values())
    for key in _MESSAGES:
        items = value.get(key)
        if isinstance(items, list) and items:
            return "text" not in value and (_are_messages(items, _is_message) or _are_messages(items, _is_role_message))
    return False


def _are_messages(items: list[Any], is_message: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Whether at least half of the first items are messages, so that a few damaged items do no harm."""
    first = items[:_EXAMINED]
    return 2 * sum(isinstance(item, dict) and is_message(item) for item in first) >= len(first)


def _is_message(item: Mapping[str, Any]) -> bool:
    return not item.keys().isdisjoint(_TIMES) and not item.keys().isdisjoint(_AUTHORS)


def _is_role_message(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("role"), str) and "content" in item and "text" not in item


def _conversation(value: Mapping[str, Any], stem: str) -> Conversation:
    if any("sender_name" in item for item in _items(value.get("messages"))[:_EXAMINED]):
        value = _repaired(value)
    holder = value
    for key in ("channel", "guild"):
        if isinstance(value.get(key), dict) and not any(value.get(name) for name in _NAMES):
            holder = value[key]
            break
    stem = "Saved messages" if value.get("type") == "saved_messages" else stem
    name = next((str(holder[key]) for key in _NAMES if holder.get(key)), stem)
    key = next((str(holder[key]) for key in _KEYS if holder.get(key) not in (None, "")), name)
    about = unread_texts(value, name, (*_MESSAGES, "mapping", *_TIMES))
    return Conversation(key, name, _messages(value), about)


def _messages(value: Mapping[str, Any]) -> list[Message]:
    """Returns the messages of a conversation in the order of their times."""
    if isinstance(value.get("mapping"), dict):
        nodes = [
            node["message"] for node in value["mapping"].values() if isinstance(node, dict) and node.get("message")
        ]
        messages = [_message(node) for node in nodes if isinstance(node, dict)]
        if all(message.sent_at for message in messages):
            messages.sort(key=lambda message: message.sent_at or datetime.min.replace(tzinfo=UTC))
        elif started := _moment(value.get("create_time")):
            messages = [replace(each, sent_at=each.sent_at or started) for each in messages]
        return messages
    listed = next(value[key] for key in _MESSAGES if isinstance(value.get(key), list))
    messages = [_message(item) for item in listed if isinstance(item, dict)]
    times = [message.sent_at for message in messages if message.sent_at]
    if times and messages[0].sent_at and messages[-1].sent_at and times[0] > times[-1]:
        messages.reverse()  # the export lists the newest message first
    return messages


def _message(item: Mapping[str, Any]) -> Message:
    sent = next((moment for key in _TIMES if (moment := _moment(item.get(key)))), None)
    text = message_text(item)
    if action := item.get("action"):
        members = (
            [str(member) for member in item.get("members") or () if member]
            if isinstance(item.get("members"), list)
            else []
        )
        text = "\n".join(filter(None, (text, ", ".join((str(item.get("title") or action), *members)))))
    identity = next((str(item[key]) for key in _IDENTITIES if item.get(key)), "")
    answers = next((str(item[key]) for key in _ANSWERED if item.get(key)), "")
    answers = answers or str(_inner(item, "reference", "messageId") or "")
    files = tuple(_files(item))
    read = " ".join((text, _person(item), *files))
    skipped = (*_SKIPPED, *(key for key in _FILES if isinstance(item.get(key), str)))
    return Message(_person(item), text, sent, files, identity, answers, unread_texts(item, read, skipped))


def _person(item: Mapping[str, Any]) -> str:
    for key in _AUTHORS:
        value = item.get(key)
        if isinstance(value, dict):
            value = next((value[name] for name in _PERSON if isinstance(value.get(name), str) and value[name]), None)
        if isinstance(value, str) and value:
            return value
    return ""


def _files(item: Mapping[str, Any]) -> Iterator[str]:
    for key in _FILES:
        value = item.get(key)
        if isinstance(value, str):  # for example "(File not included. …)" in Telegram's exports
            name = item.get("file_name") if value.startswith("(") else value
            yield str(name or key).rpartition("/")[2]
        for each in _items(value):
            name = next((str(each[name]) for name in _FILE_NAMES if each.get(name)), "")
            if name and (
                key != "attachments" or not any(each.get(text) for text in ("text", "fallback", "extracted_content"))
            ):
                yield name.rpartition("/")[2] if "/" in name else name


def _items(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _inner(value: Mapping[str, Any], *keys: str) -> object:
    found: object = value
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _moment(value: object) -> datetime | None:
    """Parses a time (UTC if it states no zone): seconds or milliseconds since 1970, ISO 8601, or the format of Google Chat.
    Returns None for other values."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        if isinstance(value, str) and not value.replace(".", "", 1).isdecimal():
            if stated := _WEEKDAY_DATE.search(value):
                form = "%B %d, %Y %I:%M:%S %p" if stated[3] else "%B %d, %Y %H:%M:%S"
                return datetime.strptime(" ".join(filter(None, stated.groups())), form).replace(tzinfo=UTC)
            sent = datetime.fromisoformat(value)
            return sent if sent.tzinfo is not None else sent.replace(tzinfo=UTC)
        seconds = float(value)  # type: ignore[arg-type]
        if not math.isfinite(seconds) or seconds <= 0:
            return None
        return datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _repaired(value: Any, depth: int = 0) -> Any:
    """Repairs the texts of Messenger, which writes each UTF-8 byte as a Latin-1 character."""
    if isinstance(value, str):
        try:
            return value.encode("latin-1").decode("utf-8")
        except (UnicodeEncodeError, UnicodeDecodeError):
            return value
    if depth < _MAX_DEPTH and isinstance(value, list):
        return [_repaired(item, depth + 1) for item in value]
    if depth < _MAX_DEPTH and isinstance(value, dict):
        return {key: _repaired(item, depth + 1) for key, item in value.items()}
    return value


def _is_slack_message(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "message" and isinstance(item.get("ts"), str)


def _slack_people(items: list[dict[str, Any]]) -> dict[str, str]:
    """Returns the display names of the users whose profiles the messages contain, by user id."""
    people = {}
    for item in items:
        profile = item.get("user_profile")
        if isinstance(profile, dict) and isinstance(item.get("user"), str) and (name := _person(item)):
            people[item["user"]] = name
    return people


def _slack_message(item: Mapping[str, Any], people: Mapping[str, str]) -> Message:
    message = _message(item)

    def shown(link: re.Match[str]) -> str:
        sign, target, label = link.groups()
        if sign == "@":
            return f"@{label or people.get(target, target)}"
        if sign:
            return f"{sign if sign == '#' else '@'}{label or target}"
        return f"{label} ({target})" if label and label != target else target

    text = html.unescape(_PARTS_OF_LINKS.sub(shown, message.text))
    return replace(message, author=people.get(message.author, message.author), text=text)


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
