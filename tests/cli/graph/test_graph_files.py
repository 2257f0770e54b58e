"""The graph over the socket and as files, of a memory that holds hostile text as well."""

import base64
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import igraph
import pytest
from lxml import html
from PIL import Image

from tests.e2e.real_hippod import PATIENCE_S, Daemon, Ran, clean_environment

pytestmark = pytest.mark.daemon

QUESTION = "Who trained the builder of the Heron gauge?"
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \u202eright to left\u202c {{ 7 * 7 }} \x1b[31m"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("graph")) as daemon:
        daemon.add(
            {
                "id": "heron",
                "title": "Heron",
                "text": "The Heron gauge was built by Casimir Dorn.",
                "triples": [["Heron gauge", "built by", "Casimir Dorn"]],
            },
            {
                "id": "dorn",
                "title": "Casimir Dorn",
                "text": "Ludo Pasternek trained Casimir Dorn.",
                "triples": [["Ludo Pasternek", "trained", "Casimir Dorn"]],
            },
            *[{"id": f"tea-{n}", "title": f"Tea {n}", "text": f"Tea number {n} is green."} for n in range(30)],
        )
        daemon.wait()
        daemon.add(
            {
                "id": "evil",
                "title": EVIL,
                "text": f"{EVIL} about the Heron gauge. {'w' * 1_000_000}",
                "triples": [[EVIL, f"built {EVIL}", "Heron gauge"]],
            }
        )
        daemon.wait()
        yield daemon


def graph(memory: Daemon, **body: Any) -> Any:
    return memory.ask("POST", "/v1/graph", json=body)


def hippoctl(memory: Daemon, *arguments: str) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "--socket", str(memory.socket), "graph", *arguments],
        env=clean_environment(memory.home),
        cwd=memory.home,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_graph_of_a_question_contains_its_passages_paths_and_edges(memory: Daemon) -> None:
    found = graph(memory, query=QUESTION, k=3, nodes=30)
    nodes = {node["id"]: node for node in found["nodes"]}
    assert len(nodes) == len(found["nodes"]) <= 30
    ranked = sorted((node["rank"], node["text"]) for node in found["nodes"] if "rank" in node)
    answer = memory.ask("POST", "/v1/query", json={"query": QUESTION, "k": 3})
    assert ranked == [(passage["rank"], passage["title"]) for passage in answer["passages"]]
    assert {seed["phrase"] for seed in found["seeds"]} == {seed["phrase"] for seed in answer["seeds"]}
    joined = {frozenset((edge["source"], edge["target"])) for edge in found["edges"]}
    assert all(each <= nodes.keys() for each in joined)
    dorn = next(path for path in found["paths"] if nodes[path["passage"]]["text"] == "Casimir Dorn")
    assert dorn["nodes"][-1] == dorn["passage"] and nodes[dorn["nodes"][0]]["reset"] > 0
    assert all(frozenset(step) in joined for step in zip(dorn["nodes"], dorn["nodes"][1:], strict=False))
    built = next(
        edge
        for edge in found["edges"]
        if {"subject": "heron gauge", "predicate": "built by", "object": "casimir dorn"} in edge.get("triples", [])
    )
    assert (built["type"], built["weight"]) == ("relation", 1.0)
    assert {built["source"], built["target"]} == {"phrase:heron gauge", "phrase:casimir dorn"}


def test_graph_of_a_node_and_of_an_earlier_commit_can_be_requested(memory: Daemon) -> None:
    around = graph(memory, phrase="  Casimir DORN ", nodes=10)
    assert around["centre"] == "phrase:casimir dorn" == around["nodes"][0]["id"]
    assert around["neighbours"] == around["nodes"][0]["links"] == len(around["nodes"]) - 1
    assert "query" not in around and all("mass" not in node for node in around["nodes"])
    with_mass = graph(memory, phrase="casimir dorn", query=QUESTION, nodes=10)
    assert {node["id"] for node in with_mass["nodes"]} == {node["id"] for node in around["nodes"]}
    assert all("mass" in node for node in with_mass["nodes"])
    passage = next(node for node in around["nodes"] if node["kind"] == "passage")
    of_passage = graph(memory, passage=passage["id"].partition(":")[2])
    assert of_passage["centre"] == passage["id"]
    then = graph(memory, query="the hostile one about the Heron gauge", as_of=around["commit"] - 1)
    assert then["commit"] == around["commit"] - 1
    assert all(node.get("document") != "added:evil" for node in then["nodes"])


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({}, 422, "give a query, a phrase, or a passage's id"),
        ({"phrase": "a", "passage": "b"}, 422, "not both"),
        ({"query": "x", "nodes": 2001}, 422, "nodes"),
        ({"query": "x", "nodes": 0}, 422, "nodes"),
        ({"query": "x", "colour": "red"}, 422, "colour"),
        ({"phrase": "nobody here"}, 404, "no phrase 'nobody here'"),
        ({"passage": "0" * 32}, 404, "no passage"),
    ],
)
def test_invalid_graph_request_is_an_error_with_the_reason(memory: Daemon, body: Any, status: int, said: str) -> None:
    answer = memory.http.post("/v1/graph", json=body)
    assert answer.status_code == status
    assert said in answer.json()["detail"]


@pytest.fixture(scope="module")
def files(memory: Daemon) -> dict[str, Path]:
    """The hostile neighbourhood as all three files, made at once."""
    made = {kind: memory.home / f"graph.{kind}" for kind in ("html", "png", "graphml")}
    flags = [part for kind, path in made.items() for part in (f"--{kind}", str(path))]
    done = hippoctl(memory, f"{EVIL} Heron gauge", *flags, "--nodes", "30", "--json")
    assert done.code == 0, done.err
    assert done.json["nodes"] == 30 and sorted(done.json["files"]) == sorted(str(path) for path in made.values())
    return made


def test_html_graph_is_one_file_without_external_content_and_escapes_text(
    memory: Daemon, files: dict[str, Path]
) -> None:
    text = files["html"].read_text("utf-8")
    page = html.document_fromstring(text)
    assert "default-src 'none'" in page.xpath("//meta[@http-equiv]/@content")[0]
    assert not page.xpath("//img | //iframe | //link[@href] | //script[@src] | //*[@onerror]")
    shown = page.xpath("//h1")[0].text_content()
    assert "<img src=x onerror=alert(2)>" in shown and "{{ 7 * 7 }}" in shown and "\u202e" not in shown
    assert len(text) < 3_000_000
    harmless = memory.home / "harmless.html"
    assert hippoctl(memory, "tea", "--html", str(harmless), "--nodes", "3").code == 0
    elements = [Counter(each.tag for each in html.parse(str(path)).iter()) for path in (files["html"], harmless)]
    assert elements[0]["script"] == elements[1]["script"]
    [data] = page.xpath("//script[@type='application/json']")
    json.loads(data.text_content().replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def test_graphml_file_contains_the_attributes_of_nodes_and_edges(files: dict[str, Path]) -> None:
    read = igraph.Graph.Read_GraphML(str(files["graphml"]))
    assert read.vcount() == 30
    heron = read.vs.find(name="heron gauge")
    assert heron["kind"] == "phrase" and heron["mass"] > 0
    passage = read.vs.find(document="added:evil")
    assert "<script>alert(1)</script>" in passage["title"] and len(passage["text"]) < 1_000
    assert set(read.es["type"]) <= {"relation", "mention", "synonym", "context"} and min(read.es["weight"]) > 0
    assert any("built by" in triples for triples in read.es["triples"])


def test_png_graph_has_the_expected_size_and_is_not_blank(files: dict[str, Path]) -> None:
    image = Image.open(BytesIO(files["png"].read_bytes()))
    assert image.size == (1600, 1200)
    colours = image.convert("RGB").getcolors(1_000_000)
    assert colours is not None and len(colours) > 100


def test_the_same_graph_looks_the_same(memory: Daemon) -> None:
    from cli.graph.layout import as_igraph, node_positions
    from cli.graph.png import png
    from daemon.contract.graph import GraphResponse

    found = GraphResponse.model_validate(graph(memory, query=QUESTION, nodes=25))
    spots = node_positions(as_igraph(found))
    assert spots == node_positions(as_igraph(found))
    assert base64.b64encode(png(found, spots)) == base64.b64encode(png(found, spots))
    assert all(0 <= axis <= 1 for spot in spots for axis in spot)


def test_graph_command_needs_an_output_and_a_non_empty_graph(memory: Daemon, tmp_path: Path) -> None:
    bare = hippoctl(memory, "tea")
    assert bare.code == 2 and "--html FILE" in bare.err
    told = hippoctl(memory, "tea", "--json", "--nodes", "2")
    assert told.code == 0 and len(told.json["nodes"]) == 2
    nothing = hippoctl(memory, "tea", "--as-of", "1", "--html", str(tmp_path / "x.html"))
    assert nothing.code == 1 and "contains nothing" in nothing.err and not (tmp_path / "x.html").exists()
    nowhere = hippoctl(memory, "tea", "--graphml", str(tmp_path / "no" / "x.graphml"))
    assert nowhere.code == 1 and "cannot be written" in nowhere.err
