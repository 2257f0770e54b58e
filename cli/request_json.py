"""JSON of what was typed. Bytes that are no UTF-8 stand in an argument as halves of characters, which no JSON parser takes."""

import json
import re
from typing import Any

from cli.document_names import as_text

_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Halves that stand for no byte: from an escape in a file of questions, "\\ud83d"."""


def request_json(value: Any) -> str:
    """`value` as JSON, with replacement characters for what no text can hold, so that the rest is asked all the same."""
    return as_text(_HALF.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
