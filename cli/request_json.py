"""Converts typed values to JSON for a request.

Python represents bytes of an argument that are not UTF-8 as surrogates, which JSON parsers reject.
"""

import json
import re

from cli.document_names import as_text

_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that represent no byte, from an escape such as "\\ud83d" in a file of questions."""


def request_json(value: object) -> str:
    """Returns `value` as JSON. Surrogates become replacement characters, so that the rest of the request is still processed."""
    return as_text(_HALF.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
