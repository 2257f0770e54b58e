"""In `fused`, links lead from the best passages to the documents they name, of the memory or the scope that is asked."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.batch_encoding import with_vectors
from memory.retrieval.followed_links import MAX_DOCUMENTS
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from memory.types import Retrieved
from store.export.json_lines import export_lines
from store.snapshot import DocumentSnapshot
from store.store import Store
from store.types import Batch, Document, Link, PassageRef, PassageText, passage_id
from tests.memory.retrieval.test_reference import ENCODER

QUERY = "Which team mends the broken cadvisor image?"
OWNERS = "file:///drive/owners.md"
TEAM = "file:///drive/teams/delivery.md"
OWNERSHIP = "The broken cadvisor image: which team mends it is said there."
TEAM_TEXT = "Delivery is the team of Olga, Per and Quentin, who mends what is broken on Mondays."
LINK = Link("teams/delivery.md", "", "the owners")
Said = tuple[str, tuple[Link, ...]]
"""The text of a document of one passage, and its links."""


def others(count: int = 12) -> dict[str, Said]:
    """Documents that have more of the question's words than the team's page."""
    words = ["which", "team", "image", "cadvisor", "broken", "mends"]
    return {
        f"file:///drive/other{at}.md": (
            f"{words[at % 6]} {words[(at + 1 + at // 6) % 6]} of the report number {at}",
            (),
        )
        for at in range(count)
    }


def commit(
    memory: Store,
    documents: dict[str, Said],
    removed: tuple[str, ...] = (),
    message_ids: Mapping[str, str] | None = None,
) -> None:
    ids = message_ids or {}
    texts = {uri: PassageText(passage_id("", text), "", text) for uri, (text, _) in documents.items()}
    records = tuple(
        Document(
            uri,
            "/drive",
            passages=(PassageRef(texts[uri].id, {}, (), links=links),),
            metadata={"message_id": ids[uri]} if uri in ids else {},
        )
        for uri, (_, links) in documents.items()
    )
    unique = {text.id: text for text in texts.values()}
    memory.commit(with_vectors(memory, ENCODER, Batch(records, removed, tuple(unique.values()))))


def ask(memory: DocumentSnapshot, k: int = 5, **changed: Any) -> Retrieved:
    chosen = RetrievalSettings(**changed)
    return retrieve(memory.snapshot, ENCODER, QUERY, "fused", k, chosen, explained=True, documents=memory)


def found(memory: DocumentSnapshot, **changed: bool) -> list[str]:
    """The first documents."""
    return [memory.documents_with_passage(hit.id)[0] for hit in ask(memory, **changed).hits]


def linked(memory: DocumentSnapshot) -> dict[str, tuple[str, str]]:
    """By the text of a passage that a link led to: the document with the link, and that of the passage."""
    explained = ask(memory, k=30).explanations
    links = {memory.snapshot.passage(each.row).text: each.link for each in explained}
    return {text: (link.document, link.target) for text, link in links.items() if link is not None}


@pytest.fixture
def memory(tmp_path: Path):
    with Store(tmp_path / "store", ENCODER.identity) as opened:
        commit(opened, others() | {OWNERS: (OWNERSHIP, (LINK,))})
        yield opened


def test_link_of_a_hit_adds_the_linked_passage_to_the_answer(memory: Store) -> None:
    commit(memory, {TEAM: (TEAM_TEXT, ())})
    assert found(memory.document_snapshot())[0] == OWNERS
    assert TEAM not in found(memory.document_snapshot(), links=False)
    assert TEAM in found(memory.document_snapshot())
    why = next(each for each in ask(memory.document_snapshot()).explanations if each.link is not None)
    assert why.link is not None and (why.link.document, why.link.target, why.link.text) == (OWNERS, TEAM, "the owners")


def test_the_export_has_an_edge_to_each_passage_that_a_link_leads_to(memory: Store) -> None:
    commit(memory, {OWNERS: (OWNERSHIP, (LINK, LINK, Link("missing.md"))), TEAM: (TEAM_TEXT, ())})
    whole = memory.document_snapshot()
    lines = [json.loads(line) for line in export_lines(whole.snapshot, whole)]
    source, target = passage_id("", OWNERSHIP), passage_id("", TEAM_TEXT)
    edge = {"kind": "edge", "type": "link", "source": source, "target": target, "weight": 2.0}
    assert [line for line in lines if line.get("type") == "link"] == [edge]


def test_links_lead_forwards_only(memory: Store) -> None:
    back = Link("../owners.md")
    commit(memory, {OWNERS: (OWNERSHIP, ()), TEAM: (TEAM_TEXT, (back,))})
    assert TEAM not in found(memory.document_snapshot())


def test_link_follows_additions_moves_and_removals_of_its_target(memory: Store) -> None:
    assert not linked(memory.document_snapshot()), "it dangles"
    commit(memory, {TEAM: (TEAM_TEXT, ())})
    assert linked(memory.document_snapshot()) == {TEAM_TEXT: (OWNERS, TEAM)}
    moved = "file:///drive/people/delivery.md"
    commit(memory, {moved: (TEAM_TEXT, ())}, removed=(TEAM,))
    assert not linked(memory.document_snapshot())
    commit(memory, {OWNERS: (OWNERSHIP, (Link("delivery"),))})
    assert linked(memory.document_snapshot()) == {TEAM_TEXT: (OWNERS, moved)}, "by its name it is found anywhere"
    commit(memory, {}, removed=(moved,))
    assert not linked(memory.document_snapshot())


def test_a_link_resolves_among_the_documents_of_the_scope(memory: Store) -> None:
    near, far = "file:///drive/delivery.md", "file:///drive/secret/delivery.md"
    commit(memory, {OWNERS: (OWNERSHIP, (Link("delivery"),)), near: (TEAM_TEXT, ()), far: (f"{TEAM_TEXT} Hidden.", ())})
    whole = memory.scoped("all", lambda _document: True)
    assert set(linked(whole).values()) == {(OWNERS, near)}
    without_near = memory.scoped("far", lambda document: document.uri != near)
    assert set(linked(without_near).values()) == {(OWNERS, far)}
    visible = memory.scoped("near", lambda document: document.uri != far)
    assert set(linked(visible).values()) == {(OWNERS, near)}
    neither = memory.scoped("neither", lambda document: document.uri not in (near, far))
    assert not linked(neither)


def test_shared_passage_has_only_links_of_documents_in_scope(memory: Store) -> None:
    copy = "file:///drive/copy.md"
    commit(memory, {OWNERS: (OWNERSHIP, ()), copy: (OWNERSHIP, (LINK,)), TEAM: (TEAM_TEXT, ())})
    assert linked(memory.document_snapshot()) == {TEAM_TEXT: (copy, TEAM)}
    assert not linked(memory.scoped("without the copy", lambda document: document.uri != copy))


class _Counted(dict[str, Document]):
    """Documents, and the number of times each was read."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        super().__init__(documents)
        self.reads: Counter[str] = Counter()

    def get(self, uri: str, default: Any = None) -> Any:
        self.reads[uri] += 1
        return super().get(uri, default)


def test_links_of_a_notice_in_many_documents_are_read_in_the_first_documents_only(memory: Store) -> None:
    copies = {f"file:///drive/copy{at:03}.md": (OWNERSHIP, (LINK,)) for at in range(2 * MAX_DOCUMENTS)}
    commit(memory, {**copies, TEAM: (TEAM_TEXT, ())})
    whole = memory.document_snapshot()
    counted = _Counted({uri: whole.documents[uri] for uri in [*copies, *others(), OWNERS, TEAM]})
    assert set(linked(replace(whole, documents=counted)).values()) == {(min(copies), TEAM)}
    assert sum(uri in copies for uri in counted.reads) <= MAX_DOCUMENTS


def test_reply_is_linked_to_its_message_by_a_thread_edge(memory: Store) -> None:
    asked, answer = "file:///drive/asked.eml", "file:///drive/answer.eml"
    commit(memory, {answer: ("It has a float.", (Link("mid:one%20id@tarn"), Link("missing.md")))})

    def edges() -> list[tuple[str, str]]:
        lines = map(json.loads, export_lines(memory.snapshot(), memory.document_snapshot()))
        return [(line["type"], line["target"]) for line in lines if line.get("type") in ("link", "thread")]

    assert edges() == []
    commit(memory, {asked: ("What does the gauge have?", ())}, message_ids={asked: "<one id@tarn>"})
    assert edges() == [("thread", passage_id("", "What does the gauge have?"))]
    commit(memory, {}, (asked,))
    assert edges() == []


def test_a_message_leads_to_its_attachment_by_an_edge_of_its_own_type(memory: Store) -> None:
    mail, plan, other = (
        "file:///drive/a.mbox#x@tarn",
        "file:///drive/a.mbox#x@tarn/1/plan.pdf",
        "file:///drive/plan.pdf",
    )
    chat, before = "file:///drive/chat.json#kiln/2024-05-02", "file:///drive/chat.json#kiln/2024-05-01"
    links = {mail: Link("#x@tarn/1/plan.pdf"), chat: Link("#kiln/2024-05-01")}
    for uri, text in ((mail, "See the plan."), (other, "An old plan."), (chat, "Is it there?")):
        commit(memory, {uri: (text, (links[uri],) if uri in links else ())})

    def edges() -> list[tuple[str, str]]:
        lines = map(json.loads, export_lines(memory.snapshot(), memory.document_snapshot()))
        found = [(line["type"], line["target"]) for line in lines if line.get("kind") == "edge" and "type" in line]
        return sorted(edge for edge in found if edge[0] in ("attachment", "link", "thread"))

    assert edges() == [], "a link to a part of a file leads to no other file of that name"
    commit(memory, {plan: ("The weir is new.", ()), before: ("The kiln is hot.", ())})
    assert edges() == [
        ("attachment", passage_id("", "The weir is new.")),
        ("thread", passage_id("", "The kiln is hot.")),
    ]


PAGES = [f"file:///drive/{folder}{name}.md" for folder in ("", "a/") for name in ("one", "two", "three")]
TARGETS = ["one", "two.md", "../one.md", "a/three.md", "three", "mid:two"]
pages = st.dictionaries(
    st.sampled_from(PAGES),
    st.one_of(
        st.none(),
        st.tuples(
            st.sampled_from([OWNERSHIP, TEAM_TEXT, "The image of a team.", "Broken on Mondays.", "Who mends it?"]),
            st.lists(st.sampled_from(TARGETS).map(Link), max_size=2).map(tuple),
        ),
    ),
    max_size=4,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(pages, min_size=1, max_size=4), st.sets(st.sampled_from(PAGES), max_size=2))
def test_linked_results_after_any_history_equal_those_of_a_fresh_memory(
    tmp_path_factory: pytest.TempPathFactory, history: list[dict[str, Said | None]], hidden: set[str]
) -> None:
    """The whole of it, and what is left without some documents."""
    present: dict[str, Said] = {}
    folder = tmp_path_factory.mktemp("history")
    with Store(folder / "grown", ENCODER.identity) as grown, Store(folder / "fresh", ENCODER.identity) as fresh:
        for change in history:
            kept = {uri: said for uri, said in change.items() if said is not None}
            gone = tuple(uri for uri, said in change.items() if said is None)
            present = {uri: said for uri, said in (present | kept).items() if uri not in gone}
            commit(grown, kept, gone)
            ask(grown.document_snapshot())
        seen = {uri: said for uri, said in present.items() if uri not in hidden}
        commit(fresh, dict(sorted(seen.items())))
        scope = grown.scoped("seen", lambda document: document.uri not in hidden)
        assert _answers_and_export(scope) == _answers_and_export(fresh.document_snapshot())
        if seen == present:
            assert _answers_and_export(grown.document_snapshot()) == _answers_and_export(fresh.document_snapshot())


def _answers_and_export(
    memory: DocumentSnapshot,
) -> tuple[list[tuple[str, float]], dict[str, tuple[str, str]], list[str]]:
    hits = [(hit.id, round(hit.score, 6)) for hit in ask(memory, k=30).hits]
    return hits, linked(memory), list(export_lines(memory.snapshot, memory))
