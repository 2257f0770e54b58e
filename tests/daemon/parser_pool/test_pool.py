"""The pool of parsers: a document that harms its parser fails alone."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consumers.failure_codes import FailureCode
from consumers.kafka.message import KafkaMessage
from consumers.parsing import Limits, ParseSummary
from consumers.records.record import Record, RecordVectors
from consumers.records.writer import to_message, write_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument, Passage
from daemon.parser_pool.children import ChildLimits, ChildLost
from daemon.parser_pool.pool import ParserPool, PoolClosed, PooledExtractor, SetAside, Turn
from memory.openie.registry import WORKER_BACKENDS
from memory.openie.rules.extractor import RulesExtractor
from store.types import PassageText
from tests.consumers.parsing.samples import docx, epub, flowed, pdf

pytestmark = pytest.mark.process

S = SplitSettings()
MIB = 1 << 20
ROOT = Path(__file__).parents[3]
CHILD_OPTIONS = {each.name for each in fields(ChildLimits)}


def run(work: Callable[[ParserPool], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def whole() -> None:
        child = ChildLimits(**{name: options.pop(name) for name in CHILD_OPTIONS & options.keys()})
        pool = ParserPool(child=child, **options)
        pool.children.start()
        try:
            await work(pool)
        finally:
            await pool.children.close()
        assert pool.children.pids == ()

    asyncio.run(whole())


async def parse(
    pool: ParserPool, path: Path | bytes, uri: str = "file:///x/doc", **options: Any
) -> list[ParsedDocument | ParseSummary]:
    return [item async for item in pool.parse(os.fsencode(path), uri, S, **options)]


async def only(pool: ParserPool, path: Path, **options: Any) -> ParsedDocument:
    (document,) = [item for item in await parse(pool, path, **options) if isinstance(item, ParsedDocument)]
    return document


async def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.md"
    path.write_text("# Good\n\nA good document.\n")
    return path


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Text that takes far longer than a second to split."""
    path = tmp_path / "slow.txt"
    path.write_text("word\n" * 3_000_000)
    return path


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "many.jsonl"
    with path.open("w") as file:
        file.writelines(
            json.dumps({"id": f"n{n}", "title": f"T{n}", "text": f"text {n}. " * 20}) + "\n" for n in range(6000)
        )
    return path


def test_unexpected_child_error_is_reported_by_type_and_location_only() -> None:
    async def work(pool: ParserPool) -> None:
        with pytest.raises(ChildLost, match=r"ValueError at daemon/parser_pool/child_main\.py:\d+ in answer") as lost:
            async for _ in pool._messages(
                {"op": "Ada met Charles"}, Turn("drive")
            ):  # the worker's ValueError contains it
                pass
        assert "Ada" not in str(lost.value)

    run(work)


def test_documents_of_every_format_are_parsed_with_a_summary(tmp_path: Path) -> None:
    files = {
        "a.txt": b"Plain words.",
        "a.md": b"# T\n\nwords",
        "a.html": b"<p>words",
        "a.csv": b"a,b\n1,2\n",
        "a.pdf": pdf([flowed(["words of it"])]),
        "a.docx": docx([("", "words")]),
        "a.epub": epub("B", ["<p>words</p>"]),
        "a.json": b'{"text": "words"}',
        "a.eml": b"Subject: T\n\nwords",
    }

    async def work(pool: ParserPool) -> None:
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
            document, summary = await parse(pool, tmp_path / name)
            assert isinstance(document, ParsedDocument) and document.error is None and document.passages
            assert isinstance(summary, ParseSummary) and summary.size == len(data) and len(summary.digest) == 32
        maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in pool.children.pids)
        assert "openvino" not in maps and "lance" not in maps

    run(work)


def test_records_are_checked_in_a_child(tmp_path: Path) -> None:
    vectors = RecordVectors("e", 4, np.eye(1, 4, dtype=np.float32))
    record = Record(ParsedDocument("u", "T", (Passage("T", "words"),)), (None,), None, vectors)
    write_file(tmp_path / "a.parquet", [record])
    (tmp_path / "b.parquet").write_bytes(b"PAR1")

    async def work(pool: ParserPool) -> None:
        verdicts = await pool.check_records([to_message(record), b"no record"])
        assert verdicts[0] is None and "not an Arrow IPC stream" in str(verdicts[1])
        assert await pool.check_record_file(str(tmp_path / "a.parquet")) is None
        assert "not a Parquet file" in str(await pool.check_record_file(str(tmp_path / "b.parquet")))

    run(work)


def test_file_with_a_non_utf8_name_is_parsed(tmp_path: Path) -> None:
    path = bytes(tmp_path) + b"/bad\xff\nname.txt"
    with open(path, "wb") as file:
        file.write(b"some words.")

    async def work(pool: ParserPool) -> None:
        document, _ = await parse(pool, path)
        assert isinstance(document, ParsedDocument) and document.passages[0].text == "some words."

    run(work)


def test_long_document_is_parsed_completely(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("\n\n".join(f"Paragraph {n} says something about the number {n}. " * 6 for n in range(3000)))

    async def work(pool: ParserPool) -> None:
        document = await only(pool, path)
        whole = "".join(passage.text for passage in document.passages)
        assert len(document.passages) > 500
        assert all(f"Paragraph {n} says" in whole for n in range(3000))

    run(work)


def test_documents_of_a_large_file_are_streamed_in_order(lines: Path) -> None:
    async def work(pool: ParserPool) -> None:
        found = await parse(pool, lines, "file:///many.jsonl")
        assert [d.uri for d in found[:-1] if isinstance(d, ParsedDocument)] == [
            f"file:///many.jsonl#n{n}" for n in range(6000)
        ]
        assert isinstance(found[-1], ParseSummary)

    run(work)


def test_slow_consumer_does_not_count_towards_the_parse_timeout(lines: Path) -> None:
    async def work(pool: ParserPool) -> None:
        count = 0
        async for item in pool.parse(bytes(lines), "u", S):
            if count == 0:
                await asyncio.sleep(2.5)  # longer than the limit of 2 s, which applies to the parser's time
            count += isinstance(item, ParsedDocument) and item.error is None
        assert count == 6000

    run(work, timeout_s=2)


def test_a_consumer_that_stops_early_leaves_a_pool_that_works(lines: Path, good: Path) -> None:
    async def work(pool: ParserPool) -> None:
        for _ in range(3):
            async with aclosing(pool.parse(bytes(lines), "u", S)) as items:
                async for item in items:
                    assert isinstance(item, ParsedDocument)
                    break
        assert (await only(pool, good)).title == "Good"

    run(work, size=1)


def test_document_beyond_the_timeout_fails_and_the_next_is_parsed(slow: Path, good: Path) -> None:
    async def work(pool: ParserPool) -> None:
        before = pool.children.pids
        document = await only(pool, slow)
        assert "took longer than 0.5 s" in (document.error or "") and not document.skipped
        assert (document.uri, document.title) == ("file:///x/doc", "doc")
        await until(lambda: not any(alive(pid) for pid in before), "the hanging child is gone")
        pool.timeout_s = 30
        assert (await only(pool, good)).error is None

    run(work, timeout_s=0.5)


def test_document_beyond_the_memory_limit_fails_and_the_next_is_parsed(tmp_path: Path, good: Path) -> None:
    path = tmp_path / "big.html"
    path.write_bytes(b"<p>words and more of them</p>\n" * 1_500_000)

    async def work(pool: ParserPool) -> None:
        document = await only(pool, path)
        assert "needed more than 160 MiB of memory" in (document.error or "")
        assert (await only(pool, good)).error is None

    run(work, memory_bytes=160 * MIB, timeout_s=60)


def test_slow_documents_of_one_source_leave_parsers_to_messages_of_another(slow: Path) -> None:
    async def work(pool: ParserPool) -> None:
        parsing = [asyncio.create_task(only(pool, slow, turn=Turn("drive"))) for _ in range(2)]
        await until(lambda: len(pool.places.running) == 2, "both parsers are taken")
        message = KafkaMessage("topic", 0, 0, -1, b"1", b"A message.")
        [[document]] = await pool.parse_messages([message], "text", S, "topic")
        assert document.error is None
        for each in await asyncio.gather(*parsing):
            assert "took longer than" in (each.error or "")

    run(work, size=2, timeout_s=6)


def test_long_document_is_set_aside_if_no_slow_place_is_free(slow: Path, good: Path) -> None:
    async def work(pool: ParserPool) -> None:
        parsing = [asyncio.create_task(only(pool, slow, turn=Turn("drive", slow=False))) for _ in range(2)]
        await until(lambda: len(pool.places.running) == 2, "both parsers are taken")
        assert (await only(pool, good, turn=Turn("other"))).title == "Good"
        outcomes = await asyncio.gather(*parsing, return_exceptions=True)
        assert sum(isinstance(each, SetAside) for each in outcomes) == 1  # the other one continues in a slow place

    run(work, size=2, timeout_s=6)


@pytest.mark.parametrize(("number", "name"), [(signal.SIGSEGV, "SIGSEGV"), (signal.SIGABRT, "SIGABRT")])
def test_parser_crash_fails_only_its_document(slow: Path, good: Path, number: int, name: str) -> None:
    async def work(pool: ParserPool) -> None:
        parsing = asyncio.create_task(only(pool, slow))
        # Until it has the document, a child may be replaced if it dies.
        await until(lambda: any(not child.between_requests for child in pool.children.all), "a child has the document")
        os.kill(pool.children.pids[0], number)
        document = await parsing
        assert f"parsing crashed ({name}); the file may be damaged" in (document.error or "")
        assert (await only(pool, good)).error is None

    run(work)


def test_a_child_that_dies_between_documents_is_replaced_without_notice(good: Path) -> None:
    async def work(pool: ParserPool) -> None:
        assert (await only(pool, good)).error is None
        (pid,) = pool.children.pids
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not alive(pid), "the child is gone")
        assert (await only(pool, good)).error is None

    run(work)


def test_child_ignores_interrupt_and_termination_signals(good: Path) -> None:
    async def work(pool: ParserPool) -> None:
        assert (await only(pool, good)).error is None
        (pid,) = pool.children.pids
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
        assert (await only(pool, good)).error is None
        assert pool.children.pids == (pid,)
        assert os.getpgid(pid) != os.getpgid(0)

    run(work)


def test_child_has_low_priority_high_oom_score_and_a_memory_limit(good: Path) -> None:
    async def work(pool: ParserPool) -> None:
        await only(pool, good)
        (pid,) = pool.children.pids
        assert os.getpriority(os.PRIO_PROCESS, pid) >= os.getpriority(os.PRIO_PROCESS, 0) + 5 or (
            os.getpriority(os.PRIO_PROCESS, pid) == 19
        )
        assert int(Path(f"/proc/{pid}/oom_score_adj").read_text()) == 800
        assert f"{1024 * MIB}" in Path(f"/proc/{pid}/limits").read_text().split("Max address space")[1].split("\n")[0]

    run(work)


def test_a_second_child_is_started_only_when_the_first_is_busy(slow: Path, good: Path) -> None:
    async def work(pool: ParserPool) -> None:
        for _ in range(5):
            await only(pool, good)
        children = [len(pool.children.pids)]
        busy = asyncio.create_task(only(pool, slow))
        await asyncio.sleep(0)
        documents = await asyncio.gather(*(only(pool, good) for _ in range(5)))
        assert all(document.error is None for document in documents)
        children.append(len(pool.children.pids))
        assert children == [1, 2]
        busy.cancel()
        with pytest.raises(asyncio.CancelledError):
            await busy

    run(work)


def test_children_are_replaced_after_recycle_after_documents(good: Path) -> None:
    async def work(pool: ParserPool) -> None:
        seen: set[int] = set()
        for _ in range(9):
            assert (await only(pool, good)).error is None
            seen.update(pool.children.pids)
        assert 3 <= len(seen) <= 4

    run(work, size=1, recycle_after=3)


def test_children_that_have_grown_are_replaced(good: Path) -> None:
    async def work(pool: ParserPool) -> None:
        await only(pool, good)
        assert pool.children.pids == ()
        assert (await only(pool, good)).error is None

    run(work, recycle_rss_bytes=MIB)


def test_closing_the_pool_ends_running_parses_without_a_result(slow: Path) -> None:
    async def work(pool: ParserPool) -> None:
        parsing = asyncio.create_task(parse(pool, slow))
        await until(lambda: bool(pool.children.pids), "a child has started")
        pids = pool.children.pids
        await pool.children.close()
        with pytest.raises(PoolClosed):
            await parsing
        assert not any(alive(pid) for pid in pids)

    run(work)


def test_children_go_when_their_parent_is_killed() -> None:
    program = (
        "import asyncio\nfrom daemon.parser_pool.pool import ParserPool\n"
        "async def main():\n"
        "    pool = ParserPool(); pool.children.start()\n"
        "    while not pool.children.pids: await asyncio.sleep(0.01)\n"
        "    print(*pool.children.pids, flush=True); await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert pids and all(alive(pid) for pid in pids)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 30
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "the children outlive their parent"
        time.sleep(0.01)


def test_parse_limits_apply_in_the_child(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("word " * 20)

    async def work(pool: ParserPool) -> None:
        assert [each.text for each in (await only(pool, path)).left_out] == [
            "1 part beyond a limit of size: the file after its first 50 bytes"
        ]

    run(work, limits=Limits(file_bytes=50))


def test_json_documents_and_json_lines_are_parsed(tmp_path: Path) -> None:
    async def work(pool: ParserPool) -> None:
        one = await pool.parse_json('{"id": "a", "text": "x", "triples": [["s", "p", "o"]]}', "add:b", S)
        assert (one.uri, one.passages[0].triples) == ("add:b", (("s", "p", "o"),))
        text = '{"id": "a", "text": "x"}\nbad\n{"id": "c", "deleted": true}'
        several = [d async for d in pool.parse_json_lines(text, "add:", S)]
        assert [(d.uri, bool(d.error), d.deleted) for d in several] == [
            ("add:a", False, False),
            ("add:line-2", True, False),
            ("add:c", False, True),
        ]
        many = "\n".join(json.dumps({"id": str(n), "text": "x"}) for n in range(200))
        assert len([d async for d in pool.parse_json_lines(many, "add:", S)]) == 200
        bad = await pool.parse_json("[" * 100_000, "add:", S)
        assert "nested too deeply" in (bad.error or "")
        odd = await pool.parse_json('{"id": "\\ud800", "text": "\udc00"}', "add:", S)
        assert odd.passages[0].text == "\ufffd"

    run(work)


def test_complete_document_is_kept_if_its_child_ends_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(pool: ParserPool) -> None:
        messages = pool._messages

        async def then_lost(*arguments: Any) -> AsyncGenerator[Any, None]:
            async for message in messages(*arguments):
                yield message
            raise ChildLost("ended the parser", FailureCode.CRASH)

        monkeypatch.setattr(pool, "_messages", then_lost)
        document = await pool.parse_json('{"id": "a", "text": "x"}', "add:b", S)
        assert (document.uri, document.error, document.passages[0].text) == ("add:b", None, "x")

    run(work)


def test_extraction_by_rules_runs_in_a_child() -> None:
    async def work(pool: ParserPool) -> None:
        found = await PooledExtractor(pool, WORKER_BACKENDS["rules"]).extract(
            [
                PassageText("1", "Mara Quill", "Mara Quill built the tide gauge in Tarn Harbour."),
                PassageText("2", "", ""),
            ],
        )
        assert [(each.passage, each.extractor) for each in found] == [
            ("1", RulesExtractor.name),
            ("2", RulesExtractor.name),
        ]
        assert found[0].triples
        [pid] = pool.children.pids
        assert "numpy" not in Path(f"/proc/{pid}/maps").read_text(), "11 MB and a fifth of a child's start"

    run(work)


def test_starting_a_child_does_not_block_the_event_loop(good: Path) -> None:
    async def work(pool: ParserPool) -> None:
        turns = 0
        parsing = asyncio.create_task(only(pool, good))
        while not parsing.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns > 100  # the loop was running all the time
        assert (await parsing).error is None

    run(work)
