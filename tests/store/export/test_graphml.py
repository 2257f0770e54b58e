"""The GraphML for other programs is the graph of `export`."""

import io
import json

import igraph
import networkx
import pytest

from store.export.graphml import graphml_lines, gzipped
from store.export.json_lines import export_lines
from store.types import passage_id
from tests.store.export.igraph_graph import to_igraph
from tests.store.small_store import complete, open_store

ODD = 'text 1 <b> & "quoted"\ttab\nline\r\nreturn \x00\x0b\x1f\ufffe\u202e 東京 \U0001f600 ]]>'
"""Markup, line ends, and characters that XML does not allow."""
SHOWN = ODD.translate(dict.fromkeys(map(ord, "\x00\x0b\x1f\ufffe"), "\ufffd"))


@pytest.fixture
def snapshot(tmp_path):
    with open_store(tmp_path) as store:
        given = (("am\x01a", "is", "bo & co"), ("am\x01a", "is", "amx"), ("<cy>", "is", "<cy>"), ("amy", "rel", "amx"))
        store.commit(complete(store, {"a": [("T\x02", ODD, given)], "b": [("", "text 4", None)]}, []))
        store.commit(complete(store, {"gone": [("T", "text 3", None)], "c": [("U", "text 2", None)]}, []))
        store.commit(complete(store, {}, ["gone"]))
        yield store.snapshot()


def written(snapshot):
    return "".join(f"{line}\n" for line in graphml_lines(snapshot)).encode()


def shown(text):
    return "".join("\ufffd" if (ord(c) < 32 and c not in "\t\n\r") or c == "\ufffe" else c for c in text)


def told(snapshot, plain=lambda text: text):
    """Returns (nodes, edges) of the export's lines: {(kind, name): (title, text)}, {(type, source, target): weight}."""
    nodes, edges = {}, {}
    for line in map(json.loads, export_lines(snapshot)):
        if line["kind"] == "passage":
            nodes["passage", passage_id(line["title"], line["text"])] = plain(line["title"]), plain(line["text"])
        elif line["kind"] == "phrase":
            nodes["phrase", plain(line["text"])] = "", plain(line["text"])
        elif line["kind"] == "edge":
            edges[line["type"], plain(line["source"]), plain(line["target"])] = line["weight"]
    return nodes, edges


def of_igraph(graph):
    nodes = {(v["kind"], v["name"]): (v["title"], v["text"]) for v in graph.vs}
    names = graph.vs["name"]
    return nodes, {(e["type"], names[e.source], names[e.target]): e["weight"] for e in graph.es}


def test_igraph_reads_graphml_with_all_nodes_and_edges(snapshot, tmp_path):
    (tmp_path / "memory.graphml").write_bytes(written(snapshot))
    graph = igraph.Graph.Read_GraphML(str(tmp_path / "memory.graphml"))
    assert not graph.is_directed()
    nodes, edges = told(snapshot, shown)
    assert len(graph.vs) == len(nodes)
    assert len(graph.es) == len(edges)
    assert of_igraph(graph) == (nodes, edges)
    assert SHOWN in graph.vs["text"]


def test_networkx_reads_graphml_with_all_nodes_and_edges(snapshot):
    graph = networkx.parse_graphml(written(snapshot).decode(), force_multigraph=True)
    nodes = {(data["kind"], data["name"]): (data.get("title", ""), data["text"]) for _, data in graph.nodes(data=True)}
    names = networkx.get_node_attributes(graph, "name")
    edges = {(e["type"], names[a], names[b]): e["weight"] for a, b, e in graph.edges(data=True)}
    assert (nodes, edges) == told(snapshot, shown)


def test_compressed_graphml_is_reproducible_and_igraph_reads_it(snapshot, tmp_path):
    first, second = (b"".join(gzipped(iter([written(snapshot)]))) for _ in range(2))
    assert first == second
    (tmp_path / "memory.graphmlz").write_bytes(first)
    assert of_igraph(igraph.Graph.Read_GraphMLz(str(tmp_path / "memory.graphmlz"))) == told(snapshot, shown)


def test_to_igraph_keeps_every_character_of_names_and_texts(snapshot):
    graph = to_igraph(snapshot)
    assert of_igraph(graph) == told(snapshot)
    # The purpose: igraph's own algorithms work on it.
    assert graph.pagerank(weights="weight")
    assert len(graph.connected_components()) >= 1


@pytest.mark.slow
def test_graphml_of_equal_memories_is_equal_in_any_commit_order(snapshot, tmp_path):
    with open_store(tmp_path / "other") as store:
        store.commit(complete(store, {"c": [("U", "text 2", None)]}, []))
        store.commit(complete(store, {"b": [("", "text 4", None)]}, []))
        given = (("amy", "rel", "amx"), ("<cy>", "is", "<cy>"), ("am\x01a", "is", "amx"), ("am\x01a", "is", "bo & co"))
        store.commit(complete(store, {"x": [("T\x02", ODD, given)]}, []))
        assert written(store.snapshot()) == written(snapshot)


def test_an_empty_memory_is_an_empty_graph(tmp_path):
    with open_store(tmp_path) as store:
        (tmp_path / "empty.graphml").write_bytes(written(store.snapshot()))
    assert len(igraph.Graph.Read_GraphML(str(tmp_path / "empty.graphml")).vs) == 0
    assert len(networkx.read_graphml(io.BytesIO((tmp_path / "empty.graphml").read_bytes()))) == 0
