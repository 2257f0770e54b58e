"""What is typed in another encoding is asked with replacement characters, instead of refused as no JSON."""

import json
from urllib.parse import parse_qs

import pytest

from cli.document_names import request_json
from tests.cli.sample_answers import LIST, QUERY
from tests.cli.scripted_daemon import Here, Reply, Scripted

LATIN = "caf\udce9"
"""How Python passes on b"caf\\xe9" of a command line in UTF-8."""


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("é水🦊", "é水🦊"),
        (LATIN, "caf\ufffd"),
        ("a\ud83db", "a\ufffdb"),
        ("\udcc3\udca9", "é"),
        ("\udc00\udcff\udfff", "\ufffd" * 3),
    ],
)
def test_invalid_utf8_in_a_request_is_replaced(text: str, read: str) -> None:
    assert json.loads(request_json({"query": [text]})) == {"query": [read]}
    request_json(text).encode()


def test_question_with_invalid_utf8_is_sent_with_replacement_characters(here: Here, scripted: Scripted) -> None:
    scripted.answers["POST /v1/query"] = Reply(QUERY)
    assert here("query", LATIN, "--label", LATIN, "--where", f"a={LATIN}").code == 0
    asked = scripted.asked[-1].body
    assert (asked["query"], asked["scope"]) == ("caf\ufffd", {"labels": ["caf\ufffd"], "where": {"a": "caf\ufffd"}})


def test_ls_with_invalid_utf8_in_a_label_sends_replacement_characters(here: Here, scripted: Scripted) -> None:
    scripted.answers["GET /v1/documents"] = Reply(LIST)
    assert here("ls", "--label", LATIN).code == 0
    assert json.loads(parse_qs(scripted.asked[-1].query)["scope"][0]) == {"labels": ["caf\ufffd"]}
