"""Supplied triples belong to their document: a client with the same text neither learns nor changes them.

Two clients see one label each, over TCP, in a daemon to which the operator imports records. The clerk's view is compared with
that of a second daemon, which has only the public documents of the first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from consumers.records.record import PassageExtraction, Record, SourcePosition
from consumers.records.writer import write_file
from consumers.types import ParsedDocument, Passage
from memory.openie.rules.extractor import RulesExtractor
from store.types import PassageText, is_statement, passage_id
from tests.daemon.access.conftest import Memory, client_tables
from tests.daemon.mcp.sdk_client import free_port
from tests.e2e.real_hippod import Daemon, Json, until
from tests.memory.llm.model_server import ModelServer, obedient

pytestmark = pytest.mark.daemon

HIDDEN = "zanzibarium"
"""Occurs in every triple that another's document supplies."""
EXTRACTORS = ["model/of-the-board", RulesExtractor.name]
"""Extractors of a record's triples: one with its own name, and one with the local extractor's name."""
MODES = ["fused", "hipporag2", "hipporag", "query-to-node", "dense", "bm25"]
QUESTION = "Who founded the mill, and what does zanzibarium cost?"


@dataclass(frozen=True)
class Shared:
    """A text in documents of both labels."""

    name: str
    text: str

    @property
    def passage(self) -> str:
        return passage_id(self.name, self.text)

    def added(self, **more: object) -> Json:
        return {"id": self.name, "title": self.name, "text": self.text, **more}

    def record(self, label: str, extractor: str, *triples: tuple[str, str, str], error: str | None = None) -> Record:
        document = ParsedDocument(
            f"kafka://articles/{self.name}/{label}",
            self.name,
            (Passage(self.name, self.text),),
            metadata={"labels": [label]},
        )
        found = PassageExtraction(extractor, (HIDDEN,), triples, 7, 3, error=error)
        return Record(document, (found,), SourcePosition("kafka:articles/0", 1))


def shared(name: str) -> Shared:
    return Shared(name, f"Odile Brandt founded the mill of {name}. The mill lies in Pellaston.")


def secret(text: Shared) -> tuple[str, str, str]:
    return HIDDEN, "costs", f"{text.name} crowns"


def found_here(text: Shared) -> set[tuple[str, str, str]]:
    """Returns the triples that the local extractor finds."""
    [found] = RulesExtractor().extract([PassageText(text.passage, text.name, text.text)])
    assert found.triples
    return set(found.triples)


def made(home: Path, model: ModelServer, **sections: Any) -> Memory:
    tokens: dict[str, str] = {}
    home.mkdir(exist_ok=True)
    api = {"tcp": f"127.0.0.1:{free_port()}"}
    return Memory(Daemon(home, folders=(), api=api, client=client_tables(home, tokens), **sections), model, tokens)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Memory, Memory]]:
    """Yields the memory of both labels, and one of the public documents alone."""
    home = tmp_path_factory.mktemp("ownership")
    with ModelServer(obedient) as model:
        mixed, alone = made(home / "mixed", model), made(home / "alone", model)
        with mixed.daemon, alone.daemon:
            yield mixed, alone
        print(f"--- logged:\n{mixed.daemon.log_text()[-6000:]}")


def import_records(memory: Memory, *records: Record) -> None:
    file = memory.daemon.home / "records.parquet"
    write_file(file, records)
    memory.daemon.ctl_json("import", file)
    memory.daemon.wait()


def add(memory: Memory, name: str, *documents: Json) -> None:
    with memory.client(name) as client:
        answer = client.post("/v1/documents", json={"documents": list(documents)})
        assert answer.is_success, answer.text
    memory.daemon.wait()


def seen(memory: Memory, name: str) -> Json:
    """Returns everything that a client can read, except times and the commit's number."""
    with memory.client(name) as client:
        return {
            "export": client.get("/v1/export").text,
            "status": _fields(
                client.get("/v1/status"), "pending", "failed", "documents", "passages", "triples", "edges"
            ),
            "states": [
                (each["uri"], each["state"], each["passages"])
                for each in client.get("/v1/documents").json()["documents"]
            ],
            "answers": [
                _fields(
                    client.post("/v1/query", json={"query": QUESTION, "mode": mode}), "passages", "triples", "seeds"
                )
                for mode in MODES
            ],
        }


def shown(memory: Memory, name: str, text: Shared) -> Json:
    with memory.client(name) as client:
        answer = client.get(f"/v1/documents/{text.passage}")
        assert answer.is_success, answer.text
        found: Json = answer.json()
        return found


def _fields(answer: httpx2.Response, *names: str) -> Json:
    assert answer.is_success, answer.text
    return {name: answer.json()[name] for name in names}


def differences(mine: Any, theirs: Any, place: str = "") -> Iterator[str]:
    """Yields the differences between two answers. Scores are compared to five digits, because the order of rows changes later
    ones."""
    if isinstance(mine, dict) and isinstance(theirs, dict) and mine.keys() == theirs.keys():
        for key in mine:
            yield from differences(mine[key], theirs[key], f"{place}.{key}")
    elif isinstance(mine, list | tuple) and isinstance(theirs, list | tuple) and len(mine) == len(theirs):
        for number, pair in enumerate(zip(mine, theirs, strict=True)):
            yield from differences(*pair, f"{place}[{number}]")
    elif mine != (pytest.approx(theirs, abs=1e-5) if isinstance(theirs, float) else theirs):
        yield f"{place}: {mine!r}, not {theirs!r}"


def assert_clerk_sees_the_same(both: tuple[Memory, Memory], *texts: Shared) -> None:
    """Asserts that the clerk sees the same in both memories, in lists and for each of `texts`."""
    mine, theirs = (
        {"all": seen(each, "clerk"), "shown": [shown(each, "clerk", text) for text in texts]} for each in both
    )
    assert list(differences(mine, theirs)) == []


@pytest.mark.parametrize("first", ["record", "document"])
@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_text_shared_with_a_hidden_record_shows_a_client_only_its_own_triples(
    both: tuple[Memory, Memory], extractor: str, first: str
) -> None:
    mixed, alone = both
    text = shared(f"boilerplate-{first}-{EXTRACTORS.index(extractor)}")
    record = text.record("board", extractor, secret(text))
    if first == "record":
        import_records(mixed, record)
    add(mixed, "clerk", text.added())
    if first == "document":
        import_records(mixed, record)
    add(alone, "clerk", text.added())
    assert_clerk_sees_the_same(both, text)
    passage = shown(mixed, "clerk", text)
    assert passage["extractor"] == RulesExtractor.name and passage["counts"]["triples"] > 0
    assert HIDDEN not in str(seen(mixed, "clerk")["export"])
    board = shown(mixed, "board", text)
    assert [each["subject"] for each in board["triples"]] == [HIDDEN] and board["extractor"] == extractor
    whole = mixed.daemon.ask("GET", f"/v1/documents/{text.passage}")
    assert [each["subject"] for each in whole["triples"]] == [HIDDEN], "who sees both has what documents supplied"


def test_a_public_record_does_not_replace_the_triples_of_a_hidden_document(both: tuple[Memory, Memory]) -> None:
    mixed, alone = both
    text = shared("minutes")
    add(mixed, "board", text.added())
    before = shown(mixed, "board", text), seen(mixed, "board")["export"]
    public = [text.record("public", extractor, secret(text)) for extractor in EXTRACTORS]
    for record in [*public, text.record("public", RulesExtractor.name)]:
        import_records(mixed, record)
        import_records(alone, record)
        assert (shown(mixed, "board", text), seen(mixed, "board")["export"]) == before
    assert_clerk_sees_the_same(both, text)


@pytest.mark.parametrize("guess", [{}, {"triples": []}, {"triples": [["a guess", "is", "true"]]}])
def test_adding_a_guessed_text_does_not_reveal_a_hidden_document(both: tuple[Memory, Memory], guess: Json) -> None:
    mixed, _ = both
    text = shared(f"wages-{len(str(guess))}")
    add(mixed, "board", text.added(triples=[secret(text)]))
    for memory in both:
        add(memory, "clerk", text.added(**guess))
    assert_clerk_sees_the_same(both, text)


def test_document_with_an_empty_triple_list_leaves_triples_of_others_unchanged(both: tuple[Memory, Memory]) -> None:
    mixed, _ = both
    text = shared("ferry")
    for memory in both:
        add(memory, "clerk", text.added(triples=[]))
        import_records(memory, text.record("public", "model/x"))
    assert shown(mixed, "clerk", text)["counts"]["triples"] == 0, "no extractor runs for it"
    add(mixed, "board", text.added())
    mine = shown(mixed, "board", text)
    statements = {triple for triple in found_here(text) if is_statement(triple)}
    assert {tuple(each.values())[:3] for each in mine["triples"]} == statements
    assert mixed.daemon.ask("GET", f"/v1/documents/{text.passage}")["counts"]["triples"] == len(statements)
    assert_clerk_sees_the_same(both, text)


def test_extraction_error_of_a_hidden_record_is_not_shown_to_other_clients(both: tuple[Memory, Memory]) -> None:
    mixed, _ = both
    text = shared("tunnel")
    import_records(mixed, text.record("board", "model/x", error=f"the model refused {HIDDEN}"))
    for memory in both:
        add(memory, "clerk", text.added())
    assert_clerk_sees_the_same(both, text)
    assert shown(mixed, "board", text)["counts"]["triples"] > 0, "the local extractor reads it"


def test_document_with_given_triples_does_not_wait_for_extraction_of_the_same_text(tmp_path: Path) -> None:
    """Otherwise the document's reader would see that another document has the text."""
    with ModelServer(obedient) as model:
        llm = {"base_url": model.url, "model": "test-model", "timeout_s": 60.0, "max_retries": 0}
        memory = made(tmp_path / "model", model, llm=llm, openie={"backend": "llm"})
        with memory.daemon as daemon:
            text = shared("harbour")
            add(memory, "clerk", text.added(triples=[["the mill", "lies in", "Pellaston"]]))
            model.stop()
            with memory.client("board") as client:
                assert client.post("/v1/documents", json={"documents": [text.added()]}).is_success
            until(lambda: daemon.status().get("extraction"), "the passage waits for the model")
            states = {each["uri"]: each["state"] for each in daemon.documents().values()}
            assert states == {"added:[public]/harbour": "indexed", "added:[board]/harbour": "pending"}
            with memory.client("clerk") as client:
                status = _fields(client.get("/v1/status"), "pending", "failed", "documents")
                assert status == {"pending": 0, "failed": 0, "documents": 1}
            calls = len(model.calls)
            model.start()
            daemon.wait()
            assert len(model.calls) > calls and not [
                each for each in daemon.documents().values() if each["state"] != "indexed"
            ]
            [triple] = shown(memory, "clerk", text)["triples"]
            assert triple["predicate"] == "lies in"
            assert shown(memory, "board", text)["extractor"].startswith("llm")
