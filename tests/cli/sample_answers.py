"""Answers of a daemon, made with the contract's own types so that a change of the contract is felt here."""

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from daemon.contract.answering.ask import AskResponse, Citation
from daemon.contract.choices import DocumentState
from daemon.contract.documents import (
    AddResponse,
    DocumentEntry,
    DocumentLink,
    DocumentList,
    PassageSummary,
    RemoveResponse,
    RetryResponse,
    ShowDocument,
    TripleText,
)
from daemon.contract.query import QueryResponse, RankedPassage, ScoredTriple, SeedPhrase, Tokens
from daemon.contract.status import DaemonState, Edges, Event, PassageShare, ReaderShare, SourceStatus, Status
from daemon.contract.transfer import ImportResponse

WHEN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
URI = "file:///drive/people/S%C3%B8ren.md"


def plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json")


STATUS = plain(
    Status(
        state=DaemonState.READY,
        commit=42,
        pending=2,
        failed=1,
        documents=61,
        passages=123,
        phrases=1022,
        triples=900,
        edges=Edges(relation=1700, mention=900, context=2500, synonym=312),
        encoder="all-MiniLM-L6-v2",
        openie="rules",
        sources=[
            SourceStatus(kind="folder", name="/drive", state="following", lag=2),
            SourceStatus.model_validate(
                {"kind": "kafka", "name": "news", "state": "error", "lag": None, "error": "broker unreachable"}
            ),
        ],
        uptime_s=3720.0,
        rss_bytes=512 * 1024 * 1024,
        extractors=[
            PassageShare(name="rules/6", passages=100),
            PassageShare(name="rules/5", passages=23, left_s=240.0),
        ],
        readers=[ReaderShare(name="reader/5", documents=61)],
        encoders=[PassageShare(name="all-MiniLM-L6-v2", passages=123)],
    )
)


def passage(rank: int, title: str, text: str, document: str = URI, **location: Any) -> RankedPassage:
    return RankedPassage(
        rank=rank, score=1 / (rank + 1), id=f"{rank:032x}", title=title, text=text, document=document, location=location
    )


def answer(*passages: RankedPassage, query: str = "Who built the rain gauge?", **more: Any) -> dict[str, Any]:
    return plain(
        QueryResponse(
            query=query,
            mode=more.pop("mode", "hipporag2"),
            commit=42,
            took_ms=more.pop("took_ms", 12.34),
            passages=list(passages),
            triples=[
                ScoredTriple(subject="emil strand", predicate="built", object="rain gauge", score=1.0, kept=True),
                ScoredTriple(subject="greta ambler", predicate="took", object="minutes", score=0.25, kept=False),
            ],
            seeds=[SeedPhrase(phrase="rain gauge", weight=0.5)],
            **more,
        )
    )


QUERY = answer(passage(1, "Emil Strand", "Emil Strand built the rain gauge in 1974.", page=3, line=12))

ENTRY = DocumentEntry(
    uri=URI, title="Søren", state=DocumentState.INDEXED, passages=2, attempts=0, modified_at=WHEN, committed_at=WHEN
)
FAILED = DocumentEntry(
    uri="file:///drive/cut.pdf",
    title="cut",
    state=DocumentState.FAILED,
    error="damaged: copy it again",
    passages=0,
    attempts=3,
)
LIST = plain(DocumentList(documents=[FAILED, ENTRY]))

SHOW = plain(
    ShowDocument(
        document=ENTRY,
        source="folder:/drive",
        metadata={"format": "markdown"},
        names=["Søren"],
        links=[DocumentLink(target="../hut.md", heading="Door", text="the hut", passage="a" * 32)],
        passages=[PassageSummary(id="a" * 32, title="Søren", text="Søren Aldvik leads the survey.")],
        phrases=["søren aldvik", "survey"],
        triples=[TripleText(subject="søren aldvik", predicate="leads", object="survey")],
        counts={"passages": 1, "phrases": 250, "triples": 1},
    )
)

ASK = plain(
    AskResponse(
        question="Who built it?",
        answer="Emil Strand built it.",
        citations=[Citation(rank=1, document=URI, title="Emil Strand", text="Emil Strand built the rain gauge.")],
        steps=[],
        tokens=Tokens(prompt=1200, completion=30),
        took_ms=2100.0,
    )
)
ADDED = plain(AddResponse(accepted=1, documents=["added:1"]))
REMOVED = plain(RemoveResponse(removed=1, missing=1, missing_uris=["added:2"]))
RETRIED = plain(RetryResponse(requeued=3))
IMPORTED = plain(ImportResponse(passages=2, triples=5, skipped=1))
EVENTS = [
    plain(Event.model_validate({"id": 1, "time": WHEN, "event": "indexed", "uri": URI, "passages": 2})),
    plain(Event.model_validate({"id": 2, "time": WHEN, "event": "commit", "commit": 43})),
]
