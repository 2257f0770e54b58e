"""Hints for schemathesis that hippod's OpenAPI document cannot express. schemathesis loads this module in its own process."""

import json
import os
from itertools import count
from typing import Any
from zlib import crc32

import schemathesis
from hypothesis import strategies as st

SCRATCH = os.environ.get("HIPPOD_API_SCRATCH", "")
"""The only directory for backups: a generated path must not choose another."""
BACKUPS = count()
KNOWN: list[str] = json.loads(os.environ.get("HIPPOD_API_KNOWN", "[]"))
"""Keys that `GET /v1/documents/{uri}` answers, because generated ones hardly ever exist."""

_scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
)
_documents = st.fixed_dictionaries(
    {"text": st.text(max_size=300)},
    optional={
        "id": st.text(min_size=1, max_size=40) | st.integers(),
        "title": _scalars,
        "triples": st.lists(st.lists(_scalars, max_size=4), max_size=4) | _scalars,
        "deleted": st.sampled_from([None, False]),
        "published_at": _scalars,
    },
)
schemathesis.openapi.media_type(
    "application/x-ndjson",
    st.lists(_documents, min_size=1, max_size=5).map(lambda lines: "\n".join(map(json.dumps, lines)).encode()),
)


@schemathesis.serializer("application/x-ndjson", "application/octet-stream")
def as_it_is(context: Any, value: Any) -> bytes:
    """Sends a body for another media type as the JSON that it is. JSON lines are made above."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    if case.path == "/v1/backup" and isinstance(case.body, dict) and SCRATCH:
        directory = case.body.get("directory")
        if isinstance(directory, str) and directory.startswith(("/", "s3:", "file:")):
            case.body["directory"] = f"{SCRATCH}/{next(BACKUPS)}/{directory}"
    elif case.path == "/v1/documents/{uri}" and KNOWN:
        drawn = crc32(repr(case.path_parameters).encode())
        if drawn % 4:  # three of four requests use an existing key
            case.path_parameters["uri"] = KNOWN[drawn // 4 % len(KNOWN)]


@schemathesis.hook
def filter_failure(context: Any, failure: Any, case: Any, response: Any) -> bool:
    """Returns False for failures that schemathesis misjudges.

    A removal names documents in its body or its query; JSON Schema cannot require one of the two.
    """
    return not (
        failure.title == "Schema-valid request rejected"
        and (case.method, case.path, response.status_code) == ("DELETE", "/v1/documents", 422)
        and response.json()["errors"] == [{"field": "uris", "message": "is required"}]
    )
