"""Exports of chat programs: a document for each conversation and day, with the authors in the text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.parsing.conversations.json_exports import keep_note, read_conversations
from consumers.parsing.parse_file import parse_data
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

SETTINGS = SplitSettings(max_tokens=400, min_tokens=0)


def read(value: object, uri: str = "file:///chats/kiln/a.json") -> list[ParsedDocument]:
    data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
    return list(parse_data(data, uri.rpartition("/")[2].encode(), uri, SETTINGS))


def said(document: ParsedDocument) -> list[str]:
    assert document.error is None
    return [line for passage in document.passages for line in passage.text.split("\n")]


def node(role: str, text: str, at: float | None) -> dict[str, object]:
    return {
        "message": {"author": {"role": role}, "create_time": at, "content": {"content_type": "text", "parts": [text]}}
    }


EXPORTS = {
    "ChatGPT": [
        {
            "title": "Wool",
            "conversation_id": "c-1",
            "create_time": 1714550000.1,
            "mapping": {
                "b": node("assistant", "With birch leaves.", 1714550002.5),
                "root": {"message": None},
                "a": node("user", "How is wool dyed?", 1714550001.5),
            },
        }
    ],
    "Claude": [
        {
            "uuid": "c-1",
            "name": "Wool",
            "chat_messages": [
                {"sender": "user", "text": "How is wool dyed?", "created_at": "2024-05-01T07:53:21Z"},
                {"sender": "assistant", "text": "With birch leaves.", "created_at": "2024-05-01T07:53:22Z"},
            ],
        }
    ],
    "Telegram": {
        "chats": {
            "list": [
                {
                    "name": "Wool",
                    "id": "c-1",
                    "messages": [
                        {
                            "id": 1,
                            "type": "message",
                            "date": "2024-05-01T07:53:21",
                            "from": "user",
                            "text": "How is wool dyed?",
                        },
                        {
                            "id": 2,
                            "type": "message",
                            "date": "2024-05-01T07:53:22",
                            "from": "assistant",
                            "text": ["With ", {"type": "bold", "text": "birch"}, " leaves."],
                        },
                    ],
                }
            ]
        }
    },
    "Discord": {
        "channel": {"id": "c-1", "name": "Wool"},
        "messages": [
            {"author": {"name": "user"}, "content": "How is wool dyed?", "timestamp": "2024-05-01T07:53:21+00:00"},
            {
                "author": {"name": "assistant"},
                "content": "With birch leaves.",
                "timestamp": "2024-05-01T07:53:22+00:00",
            },
        ],
    },
    "Messenger": {
        "title": "Wool",
        "thread_path": "c-1",
        "messages": [  # the newest is first
            {"sender_name": "assistant", "timestamp_ms": 1714550002500, "content": "With birch leaves."},
            {"sender_name": "user", "timestamp_ms": 1714550001500, "content": "How is wool dyed?"},
        ],
    },
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_exports_of_each_program_keep_authors_and_days(export: object) -> None:
    [document] = read(export)
    assert document.uri == "file:///chats/kiln/a.json#c-1/2024-05-01"
    assert document.title == "Wool"
    assert said(document) == ["user: How is wool dyed? (07:53)", "assistant: With birch leaves. (07:53)"]
    assert document.metadata["participants"] == ["user", "assistant"]
    assert str(document.metadata["published_at"]).startswith("2024-05-01T07:53:21")


SLACK = [
    {
        "type": "message",
        "user": "U1",
        "ts": "1714550000.0001",
        "text": "Who has the key?",
        "user_profile": {"real_name": "Runa Beck"},
    },
    {"type": "message", "user": "U2", "ts": "1714550060.0002", "text": "Ask <@U1>, &lt;<https://x.example|site>&gt;"},
    {"type": "message", "ts": "1714550100.0003", "text": "", "attachments": [{"fallback": "Deploy failed: disk full"}]},
    {"type": "message", "user": "U1", "ts": "1714636500.0", "text": "A plan", "files": [{"name": "plan.pdf"}]},
    {"type": "message", "subtype": "huddle_thread", "ts": "1714636600.0"},
]


def test_messages_whose_times_state_a_zone_or_none_are_ordered_together() -> None:
    messages = [
        {"author": "a", "text": "hello there", "timestamp": 1700000000},
        {"author": "b", "text": "yes indeed", "created_at": "2023-11-14T22:15:00"},
    ]
    (document,) = read({"messages": messages})
    assert document.passages[0].text == "a: hello there (22:13)\nb: yes indeed (22:15)"
    assert document.metadata["published_at"] == "2023-11-14T22:13:20+00:00"


def test_slack_channel_with_a_message_without_text_is_complete() -> None:
    first, second = read(SLACK)
    assert [first.uri[-15:], second.uri[-15:]] == ["kiln/2024-05-01", "kiln/2024-05-02"]
    assert said(first) == [
        "Runa Beck: Who has the key? (07:53)",
        "U2: Ask @Runa Beck, <site (https://x.example)> (07:54)",
        "Deploy failed: disk full (07:55)",
    ]
    assert said(second) == ["Runa Beck: A plan [plan.pdf] (07:55)"]
    assert [each.text for each in second.left_out] == ["1 attachment not read: plan.pdf"]


ROLES = [
    {"role": "user", "content": "How is wool dyed?"},
    {"role": "assistant", "content": [{"text": "With birch leaves."}]},
]
LINES = "\n".join(map(json.dumps, ROLES))
SIGNAL = "\n".join(
    json.dumps({"date": f"2024-05-01 07:53:2{at}", "sender": name, "body": text, "quote": "", "attachments": []})
    for at, (name, text) in enumerate((("user", "How is wool dyed?"), ("assistant", "With birch leaves.")))
)


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("a.json", ROLES, "#a/undated"),
        ("a.json", {"messages": ROLES}, "#a/undated"),
        ("a.jsonl", LINES, "#messages/undated"),
        ("a.jsonl", json.dumps({"messages": ROLES}), "#line-1/undated"),
        ("kiln/data.json", SIGNAL, "#messages/2024-05-01"),
    ],
)
def test_messages_of_model_apis_and_signal_are_conversations(name: str, value: object, part: str) -> None:
    [document] = read(value, f"file:///{name}")
    assert document.uri == f"file:///{name}{part}" and document.title == name.replace("/", ".").partition(".")[0]
    time = " (07:53)" if "2024" in part else ""
    assert said(document) == [f"user: How is wool dyed?{time}", f"assistant: With birch leaves.{time}"]


def test_other_or_damaged_line_among_messages_affects_only_itself() -> None:
    document, damaged, conversation = read(f'{{"text": "Words."}}\n{{broken\n{LINES}\n', "file:///a.jsonl")
    assert document.uri.endswith("#line-1") and said(document) == ["Words."]
    assert damaged.uri.endswith("#line-2") and damaged.error is not None
    assert len(said(conversation)) == 2


REPLIES = {
    "Telegram": {
        "id": 5,
        "name": "Wool",
        "messages": [
            {"id": 1, "type": "message", "date": "2024-05-01T07:53:21", "from": "Ann", "text": "How?"},
            {"id": 2, "date": "2024-05-02T07:53:21", "from": "Bo", "reply_to_message_id": 1, "text": "So."},
            {"id": 3, "date": "2024-05-02T07:53:22", "from": "Ann", "reply_to_message_id": 2, "text": "Thanks."},
            {"id": 4, "date": "2024-05-02T07:53:23", "from": "Ann", "reply_to_message_id": 99, "text": "Bye."},
            {"id": 6, "text": None},
            7,
        ],
    },
    "Discord": {
        "channel": {"id": 5, "name": "Wool"},
        "messages": [
            {"id": "1", "timestamp": "2024-05-01T07:53:21+00:00", "author": {"name": "Ann"}, "content": "How?"},
            {
                "id": "2",
                "timestamp": "2024-05-02T07:53:21+00:00",
                "author": {"name": "Bo"},
                "content": "So.",
                "reference": {"messageId": "1"},
            },
        ],
    },
}


@pytest.mark.parametrize("export", REPLIES.values(), ids=REPLIES)
def test_reply_links_to_the_day_of_its_message_despite_damaged_messages(export: object) -> None:
    first, second = read(export)
    assert [document.uri.partition("#")[2] for document in (first, second)] == ["5/2024-05-01", "5/2024-05-02"]
    assert said(second)[0] == "Bo: So. (07:53)"
    links = [[link.target for passage in document.passages for link in passage.links] for document in (first, second)]
    assert links == [[], ["#5/2024-05-01"]]


def test_a_thread_of_slack_links_to_its_beginning() -> None:
    answer = {"type": "message", "user": "U1", "ts": "1714636500.0", "thread_ts": "1714550000.0001", "text": "So."}
    _, second = read([SLACK[0], answer])
    assert [link.target for passage in second.passages for link in passage.links] == ["#kiln/2024-05-01"]


def test_the_text_of_a_file_given_to_claude_is_part_of_its_message() -> None:
    file = {"file_name": "a.txt", "extracted_content": "Boil the leaves."}
    message = {"sender": "human", "text": "See.", "created_at": "2024-05-01T07:53:21Z", "attachments": [file]}
    [document] = read([{"uuid": "c", "name": "Wool", "chat_messages": [message]}])
    assert said(document) == ["human: See.", "Boil the leaves. (07:53)"] and document.left_out == ()


def sent(**keys: object) -> dict[str, object]:
    return {"date": "2024-05-01T07:53:21", "from": "Ann", "text": "", **keys}


TELEGRAM = [
    sent(action="invite_members", members=["Bo", "Kaja"]),
    sent(
        forwarded_from="Dredging Ltd",
        text=[
            "See ",
            {"type": "text_link", "text": "it", "href": "https://a.b"},
            ", ",
            {"type": "link", "text": "https://c.d"},
        ],
    ),
    sent(file="(File not included. Change data exporting settings to download.)", file_name="offer.pdf"),
    sent(poll={"question": "Buy it?", "answers": [{"text": "Yes"}, {"text": "No"}]}),
    sent(place_name="Quay 7", address="Slip road 3"),
    sent(contact_information={"first_name": "Sara", "phone_number": "+47 1"}),
    sent(todo_list={"title": "To do", "answers": [{"text": "call the bank"}]}),
    sent(text="Hm.", sticker={"caption_of_pack": "The small lamps"}),
]


def test_every_field_of_a_telegram_message_is_text_or_a_listed_omission() -> None:
    [document] = read({"name": "Board", "about": "Whoever builds quays", "messages": TELEGRAM})
    assert said(document) == [
        "Ann: invite_members, Bo, Kaja (07:53)",
        "Ann: Forwarded from Dredging Ltd:", "See it (https://a.b), https://c.d (07:53)",
        "Ann: [offer.pdf] (07:53)",
        "Ann: Buy it? Yes", "No (07:53)",
        "Ann: Place: Quay 7", "Slip road 3 (07:53)",
        "Ann: Contact: Sara +47 1 (07:53)",
        "Ann: To do call the bank (07:53)",
        "Ann: Hm. (07:53)",
    ]  # fmt: skip
    assert [each.text for each in document.left_out] == [
        "2 headers or properties: Whoever builds quays; The small lamps",
        "1 attachment not read: offer.pdf",
    ]


def test_formatted_copies_of_a_text_are_not_read_twice() -> None:
    pieces = [
        {"type": "user", "user_id": "U1"},
        {"type": "text", "text": " has the key of "},
        {"type": "link", "url": "https://a.b"},
    ]
    blocks = [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": pieces}]}]
    message = {"type": "message", "user": "U2", "ts": "1714550000.1", "text": "<@U1> has the key of <https://a.b>"}
    [document] = read([{**message, "blocks": blocks}, {**message, "text": "", "blocks": blocks}])
    assert said(document) == ["U2: @U1 has the key of https://a.b (07:53)"] * 2
    content = [
        {"type": "thinking", "thinking": "They ask about nets."},
        {"type": "text", "text": "With a needle."},
        {"type": "tool_use", "name": "artifacts", "input": {"title": "Guide", "content": "Mend it."}},
    ]
    at = "2024-05-01T07:53:21Z"
    messages = [
        {"sender": "human", "created_at": at, "text": "How?", "content": [{"type": "text", "text": "How?"}]},
        {"sender": "assistant", "created_at": at, "text": "", "content": content},
    ]
    [document] = read([{"name": "Nets", "chat_messages": messages}])
    assert said(document) == ["human: How? (07:53)", "assistant: With a needle.", "Guide Mend it. (07:53)"]
    assert [each.text for each in document.left_out] == ["1 header or property: They ask about nets."]


def test_messenger_text_in_wrongly_decoded_utf_8_is_repaired() -> None:
    message = {
        "sender_name": "J\u00c3\u00b8rn",
        "timestamp_ms": 1714550000000,
        "share": {"share_text": "K\u00c3\u00a4se"},
    }
    [document] = read({"title": "J\u00c3\u00b8rn", "messages": [message]})
    assert (document.title, said(document)) == ("Jørn", ["Jørn: Käse (07:53)"])


def test_an_item_without_text_fails_alone() -> None:
    first, second = read([{"id": "a", "text": "Words."}, {"id": "b", "title": "None"}])
    assert first.error is None
    assert second.uri.endswith("#b") and "text" in str(second.error)


def test_google_keep_note_keeps_list_tags_and_omissions() -> None:
    note = {
        "isTrashed": False,
        "userEditedTimestampUsec": 1700000000000000,
        "title": "Pump",
        "listContent": [{"text": "fuse", "isChecked": True}, {"text": "hose", "isChecked": False}],
        "labels": [{"name": "garden"}],
        "attachments": [{"filePath": "pump.jpg", "mimetype": "image/jpeg"}],
        "sharees": [{"email": "ann@tarn.example"}],
    }
    [document] = read(note)
    assert (document.title, said(document)) == ("Pump", ["[x] fuse", "[ ] hose"])
    assert document.metadata["tags"] == ["garden"]
    assert document.metadata["attachments"] == ["pump.jpg"] and document.metadata["shared_with"] == ["ann@tarn.example"]


@pytest.mark.parametrize(
    ("lines", "day"),
    [
        (
            "\u200e[12.03.24, 18:25:40] Anna Lid: Who brings\nthe stands?\n[12.03.24, 18:26:02] Per: I do\n",
            "2024-03-12",
        ),
        ("12/03/2024, 18:25 - Anna Lid: Who brings\nthe stands?\n13/03/2024, 18:26 - Per: I do\n", "2024-03-12"),
        (
            "3/12/24, 6:25\u202fPM - Anna Lid: Who brings\nthe stands?\n3/12/24, 6:26\u202fPM - Per: I do\n",
            "2024-03-12",
        ),
    ],
)
def test_whatsapp_exports_of_several_countries_are_parsed(lines: str, day: str) -> None:
    documents = read(lines, "file:///chats/WhatsApp Chat with Choir.txt")
    assert documents[0].uri.endswith(f"#Choir/{day}") and documents[0].title == "Choir"
    whole = [line for document in documents for line in said(document)]
    assert whole == ["Anna Lid: Who brings", "the stands? (18:25)", "Per: I do (18:26)"]


def test_a_text_with_times_is_no_chat() -> None:
    [document] = read(
        "Log\n12.03.24, 18:25 - started\n12.03.24, 18:26 - stopped\nNothing else: a note.\n", "file:///log.txt"
    )
    assert document.uri == "file:///log.txt"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    "messages",
                    "mapping",
                    "message",
                    "chats",
                    "list",
                    "text",
                    "from",
                    "date",
                    "ts",
                    "author",
                    "content",
                    "parts",
                )
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(JSON)
def test_any_json_is_read_without_an_exception(value: object) -> None:
    for conversation in read_conversations(value, "c", "c") or []:
        list(conversation.messages)
    keep_note(value)
