"""A document's only owner follows from its URI and the configuration; input from another source does not change it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.records.record import Record
from consumers.records.writer import write_file
from consumers.splitting import SplitSettings
from consumers.types import FileMoved, FileRemoved, Fingerprint, ParsedDocument, Passage
from daemon.pipeline.document_reader import DocumentReader
from daemon.pipeline.ownership import ADDED, Claim, NotOwner, Owners
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.record_import import import_records, record_delivery
from daemon.pipeline.work_items import DeliveredDocument, DocumentChange, RetryFile, Work
from daemon.sources.folder import FOLDER, FolderSection
from daemon.sources.kafka.declaration import KAFKA, KafkaSection
from daemon.sources.registry import SOURCE_KINDS, owners
from memory.encoder import make_encoder
from store.store import Store
from store.types import Document
from tests.daemon.pipeline.test_order import NothingFound
from tests.daemon.pipeline.test_records import parsed

FOLDERS = ("/drive", "/drive/inner", "/drive2", "/")
TOPICS = ("articles", "art", "notes.1")
RECORDS = {"records": ("kafka://",), "others": ("kafka://notes/", "https://", "file://", "x-added:")}
names = st.sampled_from(
    ["drive", "drive2", "inner", "notes", "a.md", "b.jsonl#1", "articles", "art", "records", "..", "%2e"]
)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
begins = st.sampled_from(
    [
        "file:///",
        "file:/",
        "file://localhost/",
        "kafka://",
        "kafka:",
        "added:",
        "added:[hr]/",
        "https://",
        "x-added:",
        "",
    ]
)
uris = st.builds(lambda begin, path, fragment: f"{begin}{path}{fragment}", begins, paths, st.sampled_from(["", "#0-7"]))


def configured(folders: Any, topics: Any, records: Any) -> list[Claim]:
    sections = [FolderSection.model_construct(path=PurePosixPath(path)) for path in folders]
    feeds = [KafkaSection(topics=(topic,)) for topic in topics]
    replicas = [KafkaSection(topics=(name,), format="records", uris=RECORDS[name]) for name in records]
    tables: dict[str, Any] = {FOLDER.table: sections, KAFKA.table: [*feeds, *replicas]}
    return [claim for kind in SOURCE_KINDS for table in tables[kind.table] for claim in kind.claims(table)]


def by_the_rule(uri: str, folders: Any, topics: Any, records: Any) -> str:
    """Returns the owner by the rule of docs/reference/records.md."""
    if uri.startswith("added:"):
        return ADDED
    above = [folder for folder in folders if uri.startswith("file://" + folder.rstrip("/") + "/")]
    if above:
        return str(max(above, key=len))
    for topic in (*topics, *records):
        if uri.startswith((f"kafka://{topic}/", f"kafka://{topic}#", f"kafka:{topic}/")):
            return str(topic)
    begins = {name: [*RECORDS[name], *(["kafka://notes#"] if name == "others" else [])] for name in records}
    brought = [(len(begin), name) for name in records for begin in begins[name] if uri.startswith(begin)]
    return max(brought)[1] if brought else ADDED


@given(
    uris, st.sets(st.sampled_from(FOLDERS)), st.sets(st.sampled_from(TOPICS)), st.sets(st.sampled_from(list(RECORDS)))
)
def test_each_uri_has_exactly_the_owner_that_the_rule_gives(uri: str, folders: Any, topics: Any, records: Any) -> None:
    claims = configured(folders, topics, records)
    expected = by_the_rule(uri, folders, topics, records)
    assert Owners(claims).owner(uri).source == expected
    everyone = {ADDED, *folders, *topics, *records}
    found = Owners(claims)
    for source in everyone:
        if source == expected:
            found.check(source, uri)
        else:
            with pytest.raises(NotOwner):
                found.check(source, uri)


@given(uris, st.randoms(use_true_random=False))
def test_owner_does_not_depend_on_the_configuration_order(uri: str, rng: Any) -> None:
    claims = configured(FOLDERS, TOPICS, RECORDS)
    assert Owners(rng.sample(claims, len(claims))).owner(uri) == Owners(claims).owner(uri)


@given(uris)
def test_ownership_error_names_only_the_kind_of_the_owner(uri: str) -> None:
    found = owners(
        lambda kind: [FolderSection.model_construct(path=PurePosixPath("/secret"))] if kind is FOLDER else []
    )
    with pytest.raises(NotOwner) as refused:
        found.check("attacker", uri)
    assert "secret" not in str(refused.value)
    with pytest.raises(NotOwner, match="belongs to a followed folder"):
        found.check("attacker", "file:///secret/plan.md")


# The commit path.

FOLDER_SOURCE, OTHER_FOLDER = "/drive", "/other"
VICTIMS = {
    "file": ("file:///drive/minutes.md", FOLDER_SOURCE),
    "line": ("file:///drive/all.jsonl#1", FOLDER_SOURCE),
    "article": ("kafka://articles/1", "articles"),
    "record": ("kafka://reports/1", "records"),
    "other record": ("kafka://notes/1", "others"),
    "added": ("added:minutes", ADDED),
    "labelled": ("added:[board]/minutes", ADDED),
    "imported": ("s3://archive/1", ADDED),
}
SOURCES = (FOLDER_SOURCE, "articles", "records", "others", ADDED)
OPERATIONS = ("write", "relabel", "remove")
FOREIGN = [
    (source, name, operation)
    for name, (_, owner) in VICTIMS.items()
    for source in SOURCES
    for operation in OPERATIONS
    if source != owner
]


def document(uri: str, text: str, label: str) -> ParsedDocument:
    return parsed(uri, "Minutes", text, [["Ada", "wrote", text]], labels=[label])


def attack(uri: str, operation: str) -> DeliveredDocument:
    if operation == "remove":
        return record_delivery(Record(ParsedDocument(uri, deleted=True)))
    text = "Taken over." if operation == "write" else "The board met."
    return DeliveredDocument(uri, document(uri, text, "public" if operation == "relabel" else "board"))


def settled(folder: Path, scenario: Callable[[Pipeline], Awaitable[None]]) -> list[Document]:
    """Returns the documents after the scenario; each victim is in the memory before."""

    async def run() -> list[Document]:
        encoder = make_encoder("hash", "64", 64, "cpu")
        claims = configured([FOLDER_SOURCE, OTHER_FOLDER], ["articles"], [])
        for name, begins in {"records": ("kafka://",), "others": ("kafka://notes/",)}.items():
            claims += KAFKA.claims(KafkaSection(topics=(name,), format="records", uris=begins))
        with Store(folder, encoder.identity) as store:
            parts = (
                store,
                encoder,
                cast("Any", NothingFound()),
                DocumentReader(cast("Any", None), SplitSettings()),
                lambda *_, **__: None,
                1,
            )
            pipeline = Pipeline(*parts, owners=Owners(claims))
            pipeline.start()
            async with asyncio.timeout(60):
                for uri, owner in VICTIMS.values():
                    task = DeliveredDocument(uri, document(uri, "The board met.", "board"))
                    await pipeline.deliver(task, owner)
                await pipeline.drained()
                await scenario(pipeline)
                await pipeline.drained()
            await pipeline.stop(10)
            return [replace(each, committed_at=None) for each in store.documents()]

    return asyncio.run(run())


def as_they_were(found: list[Document]) -> bool:
    about = {(each.uri, each.source, each.title, str(each.metadata["labels"])) for each in found}
    texts = {each.passages[0].triples for each in found}
    return about == {(uri, owner, "Minutes", "['board']") for uri, owner in VICTIMS.values()} and len(texts) == 1


def test_delivery_for_a_document_of_another_source_is_refused(tmp_path: Path) -> None:
    async def scenario(pipeline: Pipeline) -> None:
        for source, name, operation in FOREIGN:
            with pytest.raises(NotOwner):
                await pipeline.deliver(attack(VICTIMS[name][0], operation), source)

    assert as_they_were(settled(tmp_path, scenario))


def test_queued_change_to_a_document_of_another_source_is_not_committed(tmp_path: Path) -> None:
    """For work that reached the queue without the check on entry."""

    async def scenario(pipeline: Pipeline) -> None:
        for source, name, operation in FOREIGN:
            uri = VICTIMS[name][0]
            pipeline.intake.put(Work(uri, attack(uri, operation), source))
            await pipeline.drained()
        file, moved = VICTIMS["file"][0], "file:///other/minutes.md"
        for task in (FileRemoved(file, OTHER_FOLDER), FileRemoved("kafka://articles/1", FOLDER_SOURCE)):
            pipeline.intake.put(Work(task.uri, task, task.source))
            await pipeline.drained()
        move = FileMoved(file, moved, b"/other/minutes.md", OTHER_FOLDER, Fingerprint(1, 1, 1, "x"))
        work = pipeline.intake.take(pipeline.intake.put(Work(moved, move, OTHER_FOLDER)))
        assert work is not None
        pipeline.committer.queue.put_now(DocumentChange(work))
        await pipeline.drained()

    assert as_they_were(settled(tmp_path, scenario))


def test_a_folder_is_not_told_that_a_refused_change_is_committed(tmp_path: Path) -> None:
    told: list[str] = []

    async def scenario(pipeline: Pipeline) -> None:
        pipeline.file_events.listen(OTHER_FOLDER, lambda uri, _position: told.append(uri))
        task = FileRemoved(VICTIMS["file"][0], OTHER_FOLDER)
        work = pipeline.intake.take(pipeline.intake.put(Work(task.uri, task, task.source)))
        assert work is not None
        pipeline.committer.queue.put_now(DocumentChange(work, positions={task.uri: None}))
        await pipeline.drained()

    assert as_they_were(settled(tmp_path, scenario))
    assert told == []


def test_file_event_for_a_file_of_another_folder_is_ignored(tmp_path: Path) -> None:
    """For example, if the other folder is itself followed and a link in the first leads to it."""

    async def scenario(pipeline: Pipeline) -> None:
        pipeline.intake.pause("for this test")
        pipeline.file_events.take(FileRemoved(VICTIMS["file"][0], OTHER_FOLDER))
        assert not pipeline.intake.pending()
        pipeline.intake.resume()

    assert as_they_were(settled(tmp_path, scenario))


def test_refused_delivery_does_not_replace_waiting_work(tmp_path: Path) -> None:
    async def scenario(pipeline: Pipeline) -> None:
        uri = VICTIMS["file"][0]
        pipeline.intake.pause("for this test")
        waiting = pipeline.intake.put(
            Work(uri, DeliveredDocument(uri, document(uri, "The board met.", "board")), FOLDER_SOURCE)
        )
        with pytest.raises(NotOwner):
            await pipeline.deliver(attack(uri, "remove"), "records")
        assert pipeline.intake.waiting_for(uri) is waiting
        pipeline.intake.resume()

    assert as_they_were(settled(tmp_path, scenario))


@pytest.mark.parametrize("order", list(permutations(["articles", "records", "others"])))
def test_delivery_order_does_not_change_the_owner(tmp_path: Path, order: tuple[str, ...]) -> None:
    uri = "kafka://articles/new"

    async def scenario(pipeline: Pipeline) -> None:
        for source in order:
            try:
                await pipeline.deliver(DeliveredDocument(uri, document(uri, f"By {source}.", "board")), source)
            except NotOwner:
                assert source != "articles"
            await pipeline.drained()

    [new] = [each for each in settled(tmp_path, scenario) if each.uri == uri]
    assert (new.source, new.passages[0].triples) == ("articles", (("ada", "wrote", "by articles"),))


def test_an_owner_may_write_relabel_and_remove(tmp_path: Path) -> None:
    async def scenario(pipeline: Pipeline) -> None:
        for uri, owner in VICTIMS.values():
            for operation in OPERATIONS:
                await pipeline.deliver(attack(uri, operation), owner)
                await pipeline.drained()

    assert {each.uri for each in settled(tmp_path, scenario)} == set()


def test_removal_request_removes_documents_of_any_source(tmp_path: Path) -> None:
    async def scenario(pipeline: Pipeline) -> None:
        await pipeline.remove([uri for uri, _ in VICTIMS.values()])

    assert settled(tmp_path, scenario) == []


def test_import_assigns_documents_to_their_owners(tmp_path: Path) -> None:
    async def scenario(pipeline: Pipeline) -> None:
        imported = [document(uri, "Imported.", "board") for uri, _ in VICTIMS.values()]
        write_file(tmp_path / "a.parquet", [Record(each, (None,) * len(each.passages)) for each in imported])
        await import_records(pipeline, tmp_path / "a.parquet")

    found = settled(tmp_path / "store", scenario)
    assert {(each.uri, each.source) for each in found} == set(VICTIMS.values())
    assert {each.passages[0].triples for each in found} == {(("ada", "wrote", "imported"),)}


def test_file_is_marked_as_empty_after_a_client_removes_its_documents(tmp_path: Path) -> None:
    """Otherwise its folder would take its documents for lost at the next start, and parse the file again."""
    read: list[dict[str, Any]] = []

    async def scenario(pipeline: Pipeline) -> None:
        store = pipeline._store
        lines = ["file:///drive/lines.jsonl#1", "file:///drive/lines.jsonl#2"]
        tracker: Any = type("Tracker", (), {"positions": lambda _, __: {FILE: Fingerprint(1, 1, 1, "x").to_json()}})()
        part: Any = type("Part", (), {"tracker": tracker, "done": lambda _: None})()
        for uri in lines:
            task = DeliveredDocument(uri, ParsedDocument(uri, "T", (Passage("T", uri, {}, ()),)))
            await pipeline.deliver(task, FOLDER_SOURCE, acknowledgement=part)
        await pipeline.drained()
        read.append(dict(store.positions[FILE]))
        await pipeline.remove(lines[:1])
        read.append(dict(store.positions[FILE]))
        await pipeline.remove(lines[1:])
        read.append(dict(store.positions[FILE]))
        pipeline.file_events.touch(FILE, Fingerprint(1, 2, 1, "x"))
        await pipeline.remove(["added:nothing"])
        read.append(dict(store.positions[FILE]))

    settled(tmp_path, scenario)
    position = Fingerprint(1, 1, 1, "x").to_json()
    assert read[:3] == [position, position, position | {"empty": True}]
    assert read[3] == Fingerprint(1, 2, 1, "x").to_json() | {"empty": True}, "a new date of the file changes nothing"


FILE = "file:///drive/lines.jsonl"


def test_retry_uses_the_present_owner_as_source(tmp_path: Path) -> None:
    """A failed document of a folder that is no longer followed: its source's name differs from the owner's."""

    async def scenario(pipeline: Pipeline) -> None:
        task = RetryFile("file:///old/a.md", b"/old/a.md", "/old")
        pipeline.intake.pause("for this test")
        assert pipeline.resubmit("file:///old/a.md", task, 1)
        assert pipeline.resubmit("file:///drive/b.md", replace(task, uri="file:///drive/b.md"), 1)
        sources = pipeline.intake.sources()
        assert (sources["file:///old/a.md"], sources["file:///drive/b.md"]) == (ADDED, FOLDER_SOURCE)
        for work in pipeline.intake.pending():
            work.task = DeliveredDocument(work.key, None)
        pipeline.intake.resume()

    assert as_they_were(settled(tmp_path, scenario))
