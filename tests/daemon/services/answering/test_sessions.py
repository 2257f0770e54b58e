"""Sessions: a deep question goes on from the points of earlier ones, over restarts, and forgets what the memory forgets."""

import json
import os
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from daemon.contract.scope import ClientScope
from daemon.services.answering.sessions import SessionService, session_key
from daemon.services.scopes import ScopeService
from memory.answering.working_memory.points import MemoryPoint, WorkingMemory
from memory.answering.working_memory.trace import memory_from_json, memory_to_json
from store.sessions import SessionDamaged, Sessions
from tests.daemon.services.answering.conftest import Asking, documents
from tests.e2e.real_hippod import until
from tests.memory.answering.working_memory.prompt_reader import Prompt
from tests.memory.answering.working_memory.scripted_model import playing
from tests.memory.answering.working_memory.toy import QUESTION
from tests.memory.llm.model_server import Hang
from tests.store.small_store import complete, open_store

pytestmark = pytest.mark.daemon


def points(answer: dict[str, Any]) -> set[str]:
    return {point["id"] for point in answer["steps"][-1]["after"]["points"]}


@pytest.fixture(autouse=True)
def cleared(asking: Asking):
    yield
    names = [each["name"] for each in asking.daemon.ask("GET", "/v1/sessions")["sessions"]]
    if names:
        asking.daemon.ask("DELETE", "/v1/sessions", json={"names": names})


def test_question_starts_with_the_points_of_its_session(asking: Asking) -> None:
    first = asking.ask(playing(), deep=True, steps=2, session="corl")
    assert first["session"] == {
        "name": "corl",
        "commit": None,
        "questions": 0,
        "points": 0,
        "forgotten": 0,
        "weakened": 0,
    }
    second = asking.ask(playing(), deep=True, steps=1, session="corl")
    assert {point["id"] for point in second["earlier"]["points"]} == points(first)
    assert second["session"]["questions"] == 1
    assert second["session"]["points"] == len(points(first))
    alone = asking.ask(playing(), deep=True, steps=1)
    assert (alone["earlier"]["points"], "session" in alone) == ([], False)


def test_sessions_are_listed_and_removed(asking: Asking) -> None:
    daemon = asking.daemon
    asking.ask(playing(), deep=True, steps=1, session="b")
    asking.ask(playing(), deep=True, steps=1, session="a")
    listed = daemon.ask("GET", "/v1/sessions")["sessions"]
    assert [each["name"] for each in listed] == ["a", "b"]
    assert [each["question"] for each in listed[0]["questions"]] == [QUESTION]
    assert listed[0]["points"] and listed[0]["used_at"] < listed[0]["expires_at"]
    shown = daemon.ctl("sessions", "list")
    assert (shown.code, QUESTION in shown.out, listed[0]["points"][0] in shown.out) == (0, True, True)
    gone = daemon.ctl_json("sessions", "rm", "a", "none")
    assert gone == {"removed": 1, "missing": ["none"]}
    assert [each["name"] for each in daemon.ctl_json("sessions")["sessions"]] == ["b"]


def test_second_concurrent_question_in_a_session_is_refused(asking: Asking) -> None:
    asking.model.script = playing(lambda call, _: Hang() if call.purpose == "evolve" else None)
    held = threading.Thread(target=lambda: asking.post(deep=True, session="one", timeout_s=4.0))
    held.start()
    until(lambda: asking.purposes == ["evolve"], "the first question is at its first step")
    refused = asking.post(deep=True, session="one")
    assert (refused.status_code, "another question" in refused.json()["detail"]) == (409, True)
    held.join()


def test_a_session_that_is_removed_during_a_question_stays_removed(asking: Asking) -> None:
    asking.ask(playing(), deep=True, steps=1, session="one")

    def remove(call: Any, _: object) -> None:
        if call.purpose == "evolve":
            asking.daemon.ask("DELETE", "/v1/sessions", json={"names": ["one"]})

    answer = asking.ask(playing(remove), deep=True, steps=1, session="one")
    assert "session one was removed while this question was answered, and is not stored" in answer["note"]
    assert asking.daemon.ask("GET", "/v1/sessions")["sessions"] == []


def test_point_of_a_client_session_is_dropped_with_any_of_its_passages(tmp_path: Path) -> None:
    """What is left of it would be shown to a client that may not see what is gone."""
    client = ClientScope(visible=("a",), client="ada")
    with open_store(tmp_path) as store:
        store.commit(complete(store, {"d1": [("T", "text 1", None)], "d2": [("T", "text 2", None)]}, []))
        ids = tuple(ref.passage for uri in ("d1", "d2") for ref in store.document(uri).passages)
        memory = memory_to_json(WorkingMemory((MemoryPoint("p1", "The secret.", ("ada",), ids),)))
        sessions = SessionService(store, lambda: 3600.0, cast("ScopeService", None))
        for scope in (None, client):
            sessions.save("s", scope, memory, 1, "Who?", "Ada.", None)
        store.commit(complete(store, {}, ["d2"]))
        sessions.sweep()
        kept = [sessions.load(session_key("s", scope), "s") for scope in (None, client)]
        left = [memory_from_json(each.memory).points for each in kept if each is not None]
        assert [[point.passages for point in points] for points in left] == [[ids[:1]], []]


def test_session_survives_kill_9_and_forgets_points_of_removed_passages(asking: Asking) -> None:
    daemon = asking.daemon
    asking.ask(playing(), deep=True, steps=2, session="kept")
    written = (daemon.store / "sessions" / "kept.json").read_bytes()
    daemon.kill()
    assert (daemon.store / "sessions" / "kept.json").read_bytes() == written
    daemon.start()
    daemon.wait()
    again = asking.ask(playing(), deep=True, steps=1, session="kept")
    had = points(again)
    holding = {id for point in again["steps"][-1]["after"]["points"] for id in point["passages"]}
    names = [each["id"] for each in documents()]
    shown = {name: daemon.ask("GET", f"/v1/documents/added%3A{name}")["passages"][0]["id"] for name in names}
    away = [name for name in names if shown[name] in holding]
    try:
        # Before the next question, which finds that itself.
        daemon.ask("DELETE", "/v1/documents", json={"uris": [f"added:{name}" for name in away]})
        daemon.wait()
        said = asking.ask(playing(), deep=True, steps=1, session="kept")
        assert said["session"]["forgotten"] == len(had)
        assert set(said["forgotten"]) == had
        assert "their passages are no longer in the memory" in said["note"]
        assert said["earlier"]["points"] == []
    finally:
        daemon.add(*[each for each in documents() if each["id"] in away])
        daemon.wait()


def test_points_of_a_removed_document_are_deleted_from_the_session_file(asking: Asking) -> None:
    daemon = asking.daemon
    hides = [["corl tower", "hides", "zanzibar"]]
    daemon.add({"id": "Secret", "title": "Secret", "text": f"{QUESTION} Zanzibar.", "triples": hides})
    daemon.wait()

    def instead(call: Any, _: int) -> Any:
        if call.purpose != "evolve":
            return None
        prompt = Prompt(call)
        point = prompt.insert("It hides Zanzibar.", [next(iter(prompt.entities))], ["Secret"])
        return {"updates": [], "inserts": [point]}

    asking.ask(playing(instead), deep=True, steps=1, session="s")
    file = daemon.store / "sessions" / "s.json"
    assert "Zanzibar" in file.read_text()
    daemon.ask("DELETE", "/v1/documents", json={"uris": ["added:Secret"]})
    daemon.wait()
    [listed] = daemon.ask("GET", "/v1/sessions")["sessions"]
    assert listed["points"] == []
    assert "Zanzibar" not in json.dumps(json.loads(file.read_text())["memory"])
    said = asking.ask(playing(), deep=True, steps=1, session="s")
    assert (said["session"]["points"], said["session"]["forgotten"]) == (1, 1)
    assert "1 were dropped" in said["note"]


def test_a_session_expires_by_age_and_a_damaged_one_is_named(asking: Asking) -> None:
    daemon = asking.daemon
    asking.ask(playing(), deep=True, steps=1, session="old")
    file = daemon.store / "sessions" / "old.json"
    whole = json.loads(file.read_text())
    file.write_text(json.dumps(whole | {"used": whole["used"] - 31 * 86400}))
    began = asking.ask(playing(), deep=True, steps=1, session="old")
    assert began["session"]["questions"] == 0, "it has begun anew"
    file.write_text(json.dumps(whole | {"used": whole["used"] - 31 * 86400}))
    assert daemon.ask("GET", "/v1/sessions")["sessions"] == []
    assert not file.exists()
    file.write_text('{"format": 1, "name"')
    refused = asking.post(deep=True, session="old")
    assert (refused.status_code, "sessions rm old" in refused.json()["detail"]) == (422, True)
    [listed] = daemon.ask("GET", "/v1/sessions")["sessions"]
    assert "cannot be read" in listed["error"]


def test_a_backup_holds_the_sessions(asking: Asking, tmp_path: Path) -> None:
    asking.ask(playing(), deep=True, steps=1, session="safe")
    asking.daemon.ask("POST", "/v1/backup", json={"directory": str(tmp_path / "b")})
    kept = (tmp_path / "b" / "sessions" / "safe.json").read_bytes()
    assert kept == (asking.daemon.store / "sessions" / "safe.json").read_bytes()


def test_answer_is_returned_if_its_session_cannot_be_stored(asking: Asking) -> None:
    """A folder stands where the session's file is to be written."""
    stands = asking.daemon.store / "sessions" / "new.json.part"
    stands.mkdir(parents=True)
    try:
        answer = asking.ask(playing(), deep=True, steps=1, session="new")
        assert answer["answer"] == "It is so. [1]"
        assert "session new could not be stored" in answer["note"]
    finally:
        stands.rmdir()


def test_a_session_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    now = [1000.0]
    sessions = Sessions(tmp_path, lambda: now[0])
    assert (sessions.load("é-1"), sessions.keys(), sessions.remove("é-1")) == (None, [], False)
    first = sessions.save("é-1", {"points": [1]}, 3, "q", "a", None)
    assert sessions.load("é-1") == first
    now[0] = 2000.0
    second = sessions.save("é-1", {"points": [2]}, 4, "q2", "a2", first)
    assert (second.created, second.used, [each.commit for each in second.questions]) == (1000.0, 2000.0, [3, 4])
    assert sessions.load("é-1") == second
    assert os.listdir(tmp_path / "sessions") == ["é-1.json"]
    assert (sessions.expired(second, 500), sessions.expired(second, -1)) == (False, True)
    # A crash before the rename leaves a part of a file beside the whole one.
    (tmp_path / "sessions" / ".é-1.new").write_text('{"form')
    assert (sessions.keys(), sessions.load("é-1")) == (["é-1"], second)
    (tmp_path / "sessions" / "bad.json").write_text('{"format": 9}')
    with pytest.raises(SessionDamaged, match='"bad" cannot be read'):
        sessions.load("bad")
    for name in ("../é-1", "a/b", ".x", ""):
        with pytest.raises(ValueError, match="cannot be a session's key"):
            sessions.load(name)


def test_sessions_are_separate_per_scope(asking: Asking) -> None:
    scope = {"source": "added"}
    whole = asking.ask(playing(), deep=True, steps=2, session="corl")
    scoped = asking.ask(playing(), deep=True, steps=2, session="corl", scope=scope)
    assert scoped["session"]["questions"] == 0 and scoped["earlier"]["points"] == []
    again = asking.ask(playing(), deep=True, steps=1, session="corl", scope=scope)
    assert {point["id"] for point in again["earlier"]["points"]} == points(scoped)
    listed = asking.daemon.ask("GET", "/v1/sessions")["sessions"]
    assert [(each["name"], each.get("scope"), len(each["questions"])) for each in listed] == [
        ("corl", None, 1),
        ("corl", scope, 2),
    ]
    assert asking.daemon.ask("DELETE", "/v1/sessions", json={"names": ["corl"]})["removed"] == 1
    assert asking.daemon.ask("GET", "/v1/sessions")["sessions"] == []
    assert points(whole)
