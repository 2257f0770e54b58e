"""The child process that parses untrusted content: `python -m daemon.parser_pool.child_main`. It serves one request at a time.

Requests arrive on stdin; messages are written to stdout. Requests and messages consist of a 4-byte big-endian length and this
number of bytes of JSON. The first message is `{"ready": true}`. A response consists of

- `{"progress": true}` before each picture that OCR reads,
- any number of `{"documents": […]}`; a long document is sent as `{"document", "more"}` and then `{"passages", "more"}`,
- the `{"summary": …}` of a file, the `{"counts": […]}` of documents in each Kafka message, or the `{"verdicts": […]}` on
  records,
- finally `{"done": true, "rss": bytes, "took": {stage: seconds}}`, or `{"error": reason}`, after which the process ends.

This module must import neither the encoder's engine nor the store's tables.
"""

import argparse
import base64
import contextlib
import ctypes
import gc
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO

from consumers.failure_codes import FailureCode
from consumers.json_documents import parse_json, read_json_document, read_json_lines
from consumers.kafka.decode import read_message
from consumers.kafka.message import KafkaMessage
from consumers.omissions import KIND_OF, Omission
from consumers.openat import FileAccess
from consumers.parsing import Limits, ParseSummary, parse_file
from consumers.splitting import SplitSettings
from consumers.splitting.passages import SPLIT_TIMER
from consumers.types import Link, ParsedDocument, Passage
from daemon.observe.redaction import raised_at

_PARENT_DIES = 1  # PR_SET_PDEATHSIG
_BATCH_PASSAGES = 64
"""Passages per message of documents. Streams a large file, and sends a small file in a single message."""
_CPU_SLACK_S = 5
_PAGE = resource.getpagesize()

Message = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(prog="daemon.parser_pool.child_main")
    parser.add_argument("--memory-bytes", type=int, required=True)
    parser.add_argument("--cpu-seconds", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args()
    requests, answers = _take_pipes()
    confine(options.memory_bytes, options.parent)
    serve(requests, answers, options.cpu_seconds)


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Moves both pipes to other descriptors, so that output of a library cannot mix with the messages."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return requests, answers


def confine(memory_bytes: int, parent: int) -> None:
    """Limits this process. The process ends with its parent or on the parent's request, but ignores the terminal's signals."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):  # Linux only; elsewhere the closed pipe ends the child
        ctypes.CDLL(None, use_errno=True).prctl(_PARENT_DIES, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)  # the parent ended before the signal was requested
    with contextlib.suppress(OSError):
        os.nice(5)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800")
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve(requests: BinaryIO, answers: BinaryIO, cpu_seconds: int) -> None:
    def progress() -> None:
        _send(answers, {"progress": True})
        _limit_cpu(cpu_seconds)

    warm()
    _send(answers, {"ready": True})
    while (request := _receive(requests)) is not None:
        _limit_cpu(cpu_seconds)
        try:
            SPLIT_TIMER.reset()
            worked = Stopwatch(answer(request, progress))
            for message in worked:
                _send(answers, message)
                _limit_cpu(cpu_seconds)
            _send(answers, {"done": True, "rss": _rss(), "took": took(request["op"], worked.seconds)})
        except MemoryError:
            gc.collect()
            _send(answers, {"error": "memory"})
            return
        except BrokenPipeError:
            return
        except Exception as error:  # noqa: BLE001 - report any bug of a parser to the parent
            # Omit the message, which may quote the document, because the parent logs this error.
            _send(answers, {"error": f"{type(error).__name__} at {raised_at(error)}"})
            return


class Stopwatch:
    """Passes messages on, and measures in `seconds` the time to produce them, without the consumer's time."""

    def __init__(self, messages: Iterator[Message]) -> None:
        self._messages = messages
        self.seconds = 0.0

    def __iter__(self) -> "Stopwatch":
        return self

    def __next__(self) -> Message:
        began = perf_counter()
        try:
            return next(self._messages)
        finally:
            self.seconds += perf_counter() - began


def took(op: str, seconds: float) -> dict[str, float]:
    """Returns the seconds by stage. Omits extraction, which the caller measures, like extraction by a model."""
    if op == "extract":
        return {}
    split = SPLIT_TIMER.reset()
    return {"parse": max(seconds - split, 0.0), "split": split}


def warm() -> None:
    """Imports the parsers of the most common formats, so that the first file need not wait for the import."""
    import consumers.parsing.formats.markup.markdown
    import consumers.parsing.formats.text  # noqa: F401


def answer(request: Mapping[str, Any], progress: Callable[[], None] = lambda: None) -> Iterator[Message]:
    """Yields the messages of a response, except the last one and progress messages, which `serve` sends."""
    match request["op"]:
        case "parse":
            found = parse_file(
                os.fsencode(request["path"]),
                request["uri"],
                SplitSettings(**request["settings"]),
                Limits.from_json(request["limits"]),
                FileAccess.from_json(request["access"]),
                name=None if request["name"] is None else os.fsencode(request["name"]),
                progress=progress,
            )
            yield from _batches(found)
        case "json":
            yield from _batches([_json_document(request)])
        case "json lines":
            text, settings = request["text"].encode("utf-8", "surrogatepass"), SplitSettings(**request["settings"])
            yield from _batches(read_json_lines(text, request["base_uri"], settings, request["first_line"]))
        case "messages":
            counts: list[int] = []
            yield from _batches(_message_documents(request, counts))
            yield {"counts": counts}
        case "extract":
            yield {"extractions": _extract(request["backend"], request["passages"])}
        case "records":
            yield {"verdicts": [_record_fault(value) for value in request["values"]]}
        case "record file":
            yield {"verdicts": [_record_file_fault(Path(request["path"]))]}
        case unknown:
            raise ValueError(f"no such request: {unknown!r}")


def _json_document(request: Mapping[str, Any]) -> ParsedDocument:
    uri = request["uri"]
    try:
        value = parse_json(request["text"])
    except ValueError as error:
        return ParsedDocument(uri, error=str(error), code=FailureCode.JSON)
    return replace(read_json_document(value, uri, "", SplitSettings(**request["settings"])), uri=uri)


def _message_documents(request: Mapping[str, Any], counts: list[int]) -> Iterator[ParsedDocument]:
    """Yields the documents of Kafka messages in order; appends the number of documents of each message to `counts`."""
    settings = SplitSettings(**request["settings"])
    for value in request["messages"]:
        documents = read_message(KafkaMessage.from_json(value), request["form"], settings)
        counts.append(len(documents))
        yield from documents


def _record_fault(value: str) -> str | None:
    """Returns why `value` (bytes in base64) is not a valid record; None if it is valid, so that the parent may decode it."""
    from consumers.records.reader import from_message
    from consumers.records.record import RecordError

    try:
        from_message(base64.b64decode(value))
    except RecordError as error:
        return str(error)
    return None


def _record_file_fault(path: Path) -> str | None:
    """Returns why a file is not a valid file of records; None if it is valid. Ignores invalid single rows."""
    from consumers.records.reader import read_file
    from consumers.records.record import RecordError

    try:
        for _ in read_file(path):
            pass
    except RecordError as error:
        return str(error)
    return None


@cache
def _extractor(backend: str) -> Any:
    from memory.openie.registry import WORKER_BACKENDS

    return WORKER_BACKENDS[backend].make()


def _extract(backend: str, passages: Iterable[Mapping[str, str]]) -> list[Message]:
    from store.types import PassageText

    texts = [PassageText(**each) for each in passages]
    return [asdict(extraction) for extraction in _extractor(backend).extract(texts)]


def _batches(found: Iterable[ParsedDocument | ParseSummary]) -> Iterator[Message]:
    batch: list[Message] = []
    weight = 0
    for item in found:
        if isinstance(item, ParseSummary):
            if batch:
                yield {"documents": batch}
                batch, weight = [], 0
            yield {"summary": asdict(item)}
            continue
        if len(item.passages) > _BATCH_PASSAGES:
            if batch:
                yield {"documents": batch}
                batch, weight = [], 0
            yield from _in_parts(item)
            continue
        batch.append(document_to_json(item))
        weight += 1 + len(item.passages)
        if weight >= _BATCH_PASSAGES:
            yield {"documents": batch}
            batch, weight = [], 0
    if batch:
        yield {"documents": batch}


def _in_parts(document: ParsedDocument) -> Iterator[Message]:
    """Yields a long document in several messages, because decoding a large message would block the parent."""
    value = document_to_json(document)
    passages = value.pop("passages")
    yield {"document": {**value, "passages": []}, "more": True}
    for start in range(0, len(passages), _BATCH_PASSAGES):
        end = start + _BATCH_PASSAGES
        yield {"passages": passages[start:end], "more": end < len(passages)}


# Documents in messages. pydantic is not used, because importing it would double the start time of this process.


def document_to_json(document: ParsedDocument) -> dict[str, Any]:
    """Returns values that `json.dumps` accepts. `passages` is a list, so that a long document can be sent in parts."""
    return {
        "uri": document.uri,
        "title": document.title,
        "passages": [_passage_values(passage) for passage in document.passages],
        "metadata": dict(document.metadata),
        "modified_at": document.modified_at,
        "error": document.error,
        "code": document.code,
        "skipped": document.skipped,
        "deleted": document.deleted,
        "left_out": [[each.kind, each.count, each.text] for each in document.left_out],
    }


def document_from_json(value: Mapping[str, Any]) -> ParsedDocument:
    code = value["code"]
    return ParsedDocument(
        uri=value["uri"],
        title=value["title"],
        passages=tuple(map(_passage, value["passages"])),
        metadata=value["metadata"],
        modified_at=value["modified_at"],
        error=value["error"],
        skipped=value["skipped"],
        deleted=value["deleted"],
        code=None if code is None else FailureCode(code),
        left_out=tuple(Omission(KIND_OF[kind], count, text) for kind, count, text in value["left_out"]),
    )


def _passage_values(passage: Passage) -> list[Any]:
    links = [[link.target, link.heading, link.text] for link in passage.links]
    return [passage.title, passage.text, dict(passage.location), passage.triples, links]


def _passage(value: Sequence[Any]) -> Passage:
    title, text, location, given, links = value
    triples = None if given is None else tuple((s, p, o) for s, p, o in given)
    return Passage(title, text, location, triples, tuple(Link(*link) for link in links))


def _limit_cpu(seconds: int) -> None:
    """Limits processor time. Unlike the parent's timeout, this limit works even if the parent does not check."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    used_s = int(used.ru_utime + used.ru_stime) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (used_s + seconds + _CPU_SLACK_S, hard))


def _rss() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _receive(pipe: BinaryIO) -> Message | None:
    head = pipe.read(4)
    if len(head) < 4:
        return None
    body = pipe.read(int.from_bytes(head))
    message: Message = json.loads(body)
    return message


def _send(pipe: BinaryIO, message: Message) -> None:
    body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    pipe.write(len(body).to_bytes(4) + body)
    pipe.flush()


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(0)
