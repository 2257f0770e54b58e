"""hypothesis strategies for external input: nearly valid bytes, with many kinds of errors."""

import json
from collections.abc import Mapping
from random import Random
from typing import Any

from hypothesis import strategies as st

from memory.retrieval import modes
from tests.e2e.real_hippod import ROOT

NASTY = (
    *(
        "",
        " ",
        "\x00",
        "\ufeff",
        "\u202eabc",
        "\ud800",
        "\udc80x",
        "İ",
        "ß",
        "ﬀ",
        "e\u0301\u0301\u0301",
        "अनुच्छेद",
        "👩‍👩‍👧‍👦",
        "\u2028",
    ),
    *(
        "../../etc/passwd",
        "file:///etc/passwd",
        "{{7*7}}",
        "$HOME",
        "${X",
        "~root",
        "%",
        "%ff",
        "#",
        "[",
        "null",
        "true",
    ),
    *("-0", "1e400", "9" * 400, "0x1F", "2026-02-30T25:61:00Z", "9999-12-31T23:59:59Z", "\n", "\r\n\r\n", "«/passage»"),
)
UNITS = (
    *(
        " ",
        "a ",
        ".",
        "A. ",
        "\n",
        "\n\n",
        "# ",
        "(",
        "'",
        "- ",
        "|",
        "Mr. ",
        "...",
        "\u0301",
        "é",
        "word",
        "Ab",
        "of the ",
        ", and ",
    ),
    *('"', "[", "{", "\\", "::", "1,", "http://a.b/", "\t", "=", "A", "a-", "<b>", "&amp;", "”", "他。"),
)
"""Repeated to make long texts: a rule with quadratic time on one of them blocks the process."""
KEYS = (
    *("id", "idx", "title", "text", "url", "published_at", "triples", "deleted", "content_base64", "filename", "docs"),
    *("passage", "extracted_entities", "extracted_triples", "Id", "", "text ", "metadata"),
)
QUERY_KEYS = ("query", "k", "mode", "filter", "as_of", "explain", "settings", "damping", "top_triples", "seed_phrases")
SETTINGS = (
    *(
        "0s",
        "1h",
        "10 min",
        "off",
        "never",
        "5",
        "0660",
        "9999",
        "1GiB",
        "-1",
        "127.0.0.1:7411",
        ":0",
        "[::1]:1",
        "hash",
    ),
    *("/dev/null", "/dev/zero", "/dev/ptmx", "/", "~", "$NOWHERE/x", "a/../b", "http://127.0.0.1:1/v1", "llm", "json"),
    *("localhost:9092", "config.toml", "*.md", "**/[", "rules", "earliest", "info", "2026-01-01T00:00:00Z"),
)
"""Values that some key of the configuration accepts."""
MODES = (*modes.MODES, "sparse")
LONGEST = 60_000
PUT = [text.encode("utf-8", "surrogatepass") for text in NASTY + UNITS]

strange = st.sampled_from(NASTY)
long_texts = st.builds(
    lambda unit, count, end: (unit * (count // max(len(unit), 1)))[:LONGEST] + end,
    st.sampled_from(UNITS) | st.text(min_size=1, max_size=6),
    st.sampled_from((300, 5_000, LONGEST)),
    strange,
)
prose = st.lists(st.sampled_from(UNITS) | strange | st.text(max_size=12), max_size=40).map("".join)
# Long texts take long to process: about one in twenty.
texts = st.one_of(prose, prose, st.text(max_size=60), strange, st.text(max_size=200), prose, prose | long_texts)
numbers = st.one_of(
    st.integers(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from((0, -1, 2**31, 2**63, 10**400, 0.1, 5e-324, 1.7e308)),
)
scalars = st.none() | st.booleans() | numbers | texts
names = st.sampled_from(KEYS) | st.text(max_size=8)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=8
)
triples = st.lists(st.lists(texts | scalars, max_size=4) | values, max_size=5)


def _mostly(right: Any) -> Any:
    return st.integers(0, 11).flatmap(lambda n: right if n else values)


def _often(right: Mapping[str, Any], always: str, keys: Any = names) -> Any:
    """Objects with `always` and some other `right` keys, mostly with the right kinds of values; sometimes with additional
    keys."""
    known = {key: _mostly(value) for key, value in right.items()}
    others = {key: value for key, value in known.items() if key != always}
    return st.builds(
        lambda some, more: {**more, **some},
        st.fixed_dictionaries({always: known[always]}, optional=others),
        st.just({}) | st.dictionaries(keys, values, max_size=2),
    )


documents = _often(
    {
        "id": texts | numbers,
        "title": texts,
        "text": texts,
        "url": texts,
        "published_at": texts | numbers,
        "triples": triples,
        "deleted": st.sampled_from((False, False, None, True)),
    },
    "text",
)
recorded = _often(
    {"passage": texts, "extracted_entities": st.lists(texts | values, max_size=4), "extracted_triples": triples},
    "passage",
)
overrides = _often(
    {
        "damping": st.floats(0, 0.99, exclude_min=True),
        "top_triples": st.integers(1, 10_000),
        "seed_phrases": st.integers(1, 10_000),
        "passage_weight": st.floats(0, 1),
        "passage_share": st.floats(0, 1),
        "name_share": st.floats(0, 1),
        "temperature": st.floats(0.01, 10),
        "passage_nodes": st.booleans(),
    },
    "damping",
)
queries = _often(
    {
        "query": texts,
        "k": st.integers(1, 1_000),
        "mode": st.sampled_from(MODES),
        "filter": st.sampled_from(("auto", "none")),
        "as_of": st.none() | st.none() | st.none() | st.integers(1, 9) | st.sampled_from(NASTY),
        "explain": st.booleans(),
        "settings": overrides,
    },
    "query",
    st.sampled_from(QUERY_KEYS) | names,
)


def _dumped(value: Any, ascii_only: bool, spaced: bool) -> bytes:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1 if spaced else None)
    return text.encode("utf-8", "surrogatepass")


def as_json(value: Any) -> Any:
    """Returns the values as Python writes JSON, including NaN and Infinity."""
    return st.builds(_dumped, value, st.booleans(), st.booleans())


def broken(data: bytes, chosen: Random) -> bytes:
    """Returns `data` with one or a few cuts, repetitions, flips, deletions or insertions."""
    out = bytearray(data)
    for _ in range(chosen.choice((1, 1, 1, 2, 5))):
        at = chosen.randint(0, len(out))
        match chosen.choice(("cut", "put", "put", "flip", "flip", "double", "drop", "nest")):
            case "cut":
                del out[at:]
            case "put":
                out[at:at] = chosen.choice(PUT)
            case "flip":
                if at < len(out):
                    out[at] ^= 1 << chosen.randint(0, 7)
            case "double":
                out[at:at] = out[at : at + chosen.randint(1, 400)]
            case "drop":
                del out[at : at + chosen.randint(1, 20)]
            case "nest":
                out[at:at] = chosen.choice((b"[", b'{"a":', b"[[")) * chosen.choice((3, 30, 200, 2_000, 30_000))
    return bytes(out)


def _lines(parts: list[bytes], end: bytes, start: bytes) -> bytes:
    return start + end.join(part.replace(b"\n", b" ") for part in parts)


json_documents = as_json(documents | documents | st.lists(documents, max_size=4) | values)
json_lines = st.builds(
    _lines,
    st.lists(as_json(documents | documents | values) | st.binary(max_size=20), max_size=6),
    st.sampled_from((b"\n", b"\r\n", b"\n\n", b"\n \n")),
    st.sampled_from((b"", b"\xef\xbb\xbf", b"\n", b"\xff\xfe")),
)
openie_files = as_json(
    st.fixed_dictionaries(
        {"docs": st.lists(recorded | values, max_size=4) | values}, optional={"avg_ent_chars": numbers}
    )
    | values
)
query_bodies = as_json(queries)

SPLITTER = b"\x1e"
kafka_values = st.builds(
    lambda flags, value, key, header: bytes([flags]) + SPLITTER.join((value, key, header)),
    st.integers(0, 255),
    json_documents | json_documents | texts.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=12) | texts.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=30),
)
"""The other parts of a message (`targets` reads them), its value, its key, and a header."""


def _toml(value: Any) -> str:
    """Returns a value as TOML, or as nearly valid TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {_toml(each)}" for key, each in value.items()) + "}"
    return "''" if value is None else json.dumps(value)


def _table(head: str, keys: Mapping[str, Any]) -> str:
    return f"{head}\n" + "".join(f"{name} = {_toml(value)}\n" for name, value in keys.items())


def configurations(sections: Mapping[str, tuple[bool, tuple[str, ...]]]) -> Any:
    """TOML of hippod's own sections and keys with values of all kinds, and the shipped file with an error in it.

    `sections`: by name, whether the section is an array of tables, and its keys.
    """
    likely = st.sampled_from(SETTINGS)
    some = (
        likely | likely | scalars | st.lists(likely | scalars, max_size=3) | st.dictionaries(names, scalars, max_size=2)
    )

    @st.composite
    def table(draw: Any) -> str:
        name = draw(st.sampled_from(sorted(sections)))
        many, keys = sections[name]
        chosen = draw(
            st.lists(
                st.sampled_from(keys) | st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=5),
                max_size=5,
                unique=True,
            )
        )
        head = f"[[{name}]]" if many != draw(st.sampled_from((False,) * 9 + (True,))) else f"[{name}]"
        return _table(head, {key: draw(some) for key in chosen})

    shipped = (ROOT / "config.toml").read_text("utf-8").replace("\n#", "\n")
    whole = st.lists(table(), max_size=5).map("\n".join) | st.sampled_from(
        (shipped, (ROOT / "config.toml").read_text("utf-8"))
    )
    return whole.map(lambda text: text.encode("utf-8", "surrogatepass"))
