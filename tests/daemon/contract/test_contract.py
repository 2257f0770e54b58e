"""The JSON of the socket and of `hippoctl --json`: its names are stable for scripts."""

import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from daemon import contract
from daemon.contract.base import utc_time
from daemon.contract.choices import DocumentState
from daemon.contract.documents import DocumentEntry, ShowPhrase, ShowResponse
from daemon.contract.http.routes import Route, document_path
from daemon.contract.query import Mode, QueryRequest, QueryResponse
from daemon.contract.status import Event, Status
from store.types import State

MODULES = [import_module(each.name) for each in pkgutil.walk_packages(contract.__path__, "daemon.contract.")]
NAMES = {
    "Status": "state commit pending failed documents passages phrases triples edges encoder openie sources uptime_s rss_bytes",
    "Edges": "relation mention context synonym",
    "SourceStatus": "kind name state lag",
    "QueryResponse": "query mode commit took_ms passages triples seeds",
    "RankedPassage": "rank score id title text document location",
    "ScoredTriple": "subject predicate object score kept",
    "SeedPhrase": "phrase weight",
    "AskResponse": "question answer citations steps tokens took_ms",
    "Citation": "rank document title text",
    "Tokens": "prompt completion",
    "AddResponse": "accepted documents",
    "RemoveResponse": "removed missing",
    "DocumentEntry": "uri title state error passages attempts modified_at committed_at",
    "RetryResponse": "requeued",
    "Event": "time event uri",
    "ImportResponse": "passages triples skipped",
    "EvalResponse": "n recall all took_ms",
    "Percentiles": "p50 p95",
}


@pytest.mark.parametrize("model", NAMES)
def test_response_models_have_all_contract_fields(model: str) -> None:
    [found] = {getattr(module, model) for module in MODULES if hasattr(module, model)}
    assert set(NAMES[model].split()) <= set(found.model_fields)


def test_modes_include_every_contract_name() -> None:
    assert {str(mode) for mode in Mode} >= {"hipporag2", "query-to-node", "ner-to-node", "hipporag", "dense", "bm25"}


@pytest.mark.process
def test_importing_the_contract_imports_no_server_code() -> None:
    found = subprocess.run(
        [sys.executable, "-c", f"import sys, {', '.join(each.__name__ for each in MODULES)}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    ).stdout.split()
    heavy = {
        "fastapi",
        "starlette",
        "uvicorn",
        "numpy",
        "openvino",
        "lancedb",
        "store",
        "consumers",
        "structlog",
    }
    assert not heavy & set(found)
    declarations = {"memory", "memory.retrieval", "memory.retrieval.modes", "memory.retrieval.settings"}
    declarations |= {"memory.answering", "memory.answering.working_memory"}
    declarations |= {"memory.answering.working_memory.declared_settings"}
    assert {name for name in found if name.split(".")[0] == "memory"} == declarations
    assert not any(name.startswith("daemon.") and not name.startswith("daemon.contract") for name in found)


def test_a_request_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValidationError):
        QueryRequest.model_validate({"query": "x", "topk": 3})


@pytest.mark.parametrize("text", ["", " \n\t", "x" * 40_000])
def test_empty_or_overlong_query_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        QueryRequest(query=text)


def test_client_ignores_unknown_fields_of_a_newer_daemon() -> None:
    assert not hasattr(DocumentEntry.model_validate(plain_entry() | {"colour": "green"}), "colour")


def test_additional_event_fields_are_kept() -> None:
    event = Event.model_validate_json(
        '{"time": "2026-01-02T03:04:05Z", "event": "indexed", "uri": "u:1", "passages": 3}'
    )
    assert event.model_dump(mode="json") == {
        "time": "2026-01-02T03:04:05Z",
        "event": "indexed",
        "uri": "u:1",
        "passages": 3,
    }


def test_response_contains_note_only_if_it_is_set() -> None:
    bare = QueryResponse(query="q", mode="dense", commit=1, took_ms=1.0, passages=[], triples=[], seeds=[])
    assert set(bare.model_dump()) == set(NAMES["QueryResponse"].split())
    assert bare.model_copy(update={"note": "fell back"}).model_dump()["note"] == "fell back"


def test_document_without_an_error_has_error_null() -> None:
    assert DocumentEntry.model_validate(plain_entry()).model_dump(mode="json")["error"] is None


def test_timestamps_are_utc_with_a_z_suffix() -> None:
    entry = DocumentEntry.model_validate(plain_entry() | {"modified_at": utc_time(1_700_000_000.25)})
    assert '"modified_at":"2023-11-14T22:13:20.250000Z"' in entry.model_dump_json()


@given(st.text(min_size=1))
def test_any_key_survives_encoding_in_a_document_path(key: str) -> None:
    path = document_path(key)
    assert path.isascii()
    assert path.count("/") == Route.DOCUMENTS.count("/") + 1
    assert unquote(path.rpartition("/")[2], errors="strict") == key


def test_show_responses_are_distinguished_by_kind() -> None:
    phrase = ShowPhrase(text="x", passages=[], relations=[], synonyms=[], triples=[], counts={})
    assert TypeAdapter(ShowResponse).validate_json(phrase.model_dump_json()) == phrase


def test_status_survives_parsing_and_serialisation() -> None:
    text = (
        '{"state":"ready","commit":1,"pending":0,"failed":0,"documents":1,"passages":1,"phrases":2,"triples":1,'
        '"edges":{"relation":1,"mention":0,"context":2,"synonym":0},"encoder":"e","openie":"rules",'
        '"left_out":{},"skipped":{},"sources":[{"kind":"folder","name":"n","state":"following","lag":null,"path":"/x"}],"uptime_s":1.0,"rss_bytes":5}'
    )
    assert Status.model_validate_json(text).model_dump_json() == text


def plain_entry() -> dict[str, object]:
    return {"uri": "u:1", "title": "t", "state": DocumentState.INDEXED, "passages": 1, "attempts": 1}


def test_a_document_has_the_same_states_in_the_store_and_on_the_wire() -> None:
    """The contract imports nothing of the server, so the states are defined in both."""
    assert [state.value for state in DocumentState] == [state.value for state in State]
