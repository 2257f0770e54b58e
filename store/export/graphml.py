"""The graph for other programs: as GraphML, which igraph, networkx and Gephi read.

Nodes are the passages, then the phrases; edges the context, mention, relation, synonym, link and thread edges, in the order of
`store.export.json_lines`. A node has `kind`, `text` and `title`, an edge `type` and `weight`. A passage's `name` is its id, a
phrase's its text.
igraph's other formats are no use for it: its pickles run code when they are opened, NCOL and LGL hold no texts and no kinds,
GML no control characters and no line ends. Packed, GraphML is as small as any.
"""

import re
import zlib
from collections.abc import Iterator
from xml.sax.saxutils import escape

from store.document_snapshot import DocumentSnapshot
from store.export.canonical_order import EDGE_TYPES, CanonicalOrder
from store.export.link_edges import link_edges
from store.snapshot import Snapshot

ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write, not even escaped; it becomes U+FFFD."""

HEAD = (
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
TAIL = ("  </graph>", "</graphml>")


def graphml_lines(snapshot: Snapshot, memory: DocumentSnapshot | None = None) -> Iterator[str]:
    """Lines of a GraphML file without line ends, made as they are asked for. The links are those of `memory`, which is the
    snapshot with its documents."""
    ordered = CanonicalOrder(snapshot)
    yield from HEAD
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
    yield from TAIL


def gzipped(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks as one gzip file, which igraph reads as `graphmlz`. The same input gives the same bytes."""
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
    # A parser turns a bare carriage return into a line feed.
    return escape(ILLEGAL.sub("\ufffd", value), {"\r": "&#13;"})
