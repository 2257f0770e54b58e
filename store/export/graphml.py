"""Exports the graph as GraphML, which igraph, networkx and Gephi read.

Nodes are the passages, followed by the phrases. Edges are the context, mention, relation, synonym, link, thread and attachment
edges, in the order of `store.export.json_lines`. A node has `kind`, `text` and `title`; an edge has `type` and `weight`. The
`name` of a passage is its id; the `name` of a phrase is its text.

Other formats of igraph are unsuitable: its pickles execute code when they are opened, NCOL and LGL cannot store texts and
kinds, and GML cannot store control characters and line breaks. Compressed GraphML is no larger than these formats.
"""

import re
import zlib
from collections.abc import Iterator
from xml.sax.saxutils import escape

from store.export.canonical_order import EDGE_TYPES, CanonicalOrder, link_edges
from store.snapshot import DocumentSnapshot, Snapshot

ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot represent, even if they are escaped. The characters are replaced by U+FFFD."""

HEADER = (
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    *(
        f'  <key id="{name}" for="{of}" attr.name="{name}" attr.type="{type_}"/>'
        for name, of, type_ in (
            ("name", "node", "string"),
            ("kind", "node", "string"),
            ("title", "node", "string"),
            ("text", "node", "string"),
            ("type", "edge", "string"),
            ("weight", "edge", "double"),
        )
    ),
    '  <graph id="memory" edgedefault="undirected">',
)
FOOTER = ("  </graph>", "</graphml>")


def graphml_lines(snapshot: Snapshot, memory: DocumentSnapshot | None = None) -> Iterator[str]:
    """Yields the lines of a GraphML file without line ends. `memory`: the snapshot with its documents, from which the link
    edges are derived; None omits link edges."""
    ordered = CanonicalOrder(snapshot)
    yield from HEADER
    number = 0
    for row in ordered.passages.tolist():
        passage = snapshot.passage(row)
        yield _node(number, passage.id, "passage", passage.title, passage.text)
        number += 1
    for row in ordered.phrases.tolist():
        phrase = snapshot.phrase(row)
        yield _node(number, phrase, "phrase", "", phrase)
        number += 1
    passages = len(ordered.passages)
    for kind in EDGE_TYPES:
        first = 0 if kind == "context" else passages
        for source, target, weight in zip(*ordered.edges(kind), strict=True):
            yield _edge(source + first, target + passages, kind, float(weight))
    numbers = {row: number for number, row in enumerate(ordered.passages.tolist())}
    for edge in link_edges(memory, list(numbers)) if memory is not None else ():
        target = snapshot.passage_row(edge.target)
        if target is not None:
            yield _edge(numbers[edge.row], numbers[target], edge.type, float(edge.count))
    yield from FOOTER


def gzipped(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the chunks compressed as one gzip file, which igraph reads as `graphmlz`. Equal input gives equal bytes."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    for chunk in chunks:
        if part := packer.compress(chunk):
            yield part
    yield packer.flush()


def _edge(source: int, target: int, kind: str, weight: float) -> str:
    return (
        f'    <edge source="n{source}" target="n{target}">'
        f'<data key="type">{kind}</data><data key="weight">{weight!r}</data></edge>'
    )


def _node(number: int, name: str, kind: str, title: str, text: str) -> str:
    values = {"name": name, "kind": kind, "title": title, "text": text}
    data = "".join(f'<data key="{key}">{_text(value)}</data>' for key, value in values.items())
    return f'    <node id="n{number}">{data}</node>'


def _text(value: str) -> str:
    # An XML parser converts an unescaped carriage return to a line feed.
    return escape(ILLEGAL.sub("\ufffd", value), {"\r": "&#13;"})
