"""The fuzzed functions of bytes. Each raises only for defects: an exception that its caller does not expect, or a result that
later steps cannot handle."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from pydantic import BaseModel

from consumers.json_documents import read_json_lines
from consumers.kafka.decode import read_message
from consumers.kafka.message import KafkaMessage
from consumers.parsing import parse_data
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from daemon.config.config import Config
from daemon.config.load import ConfigError, load_config
from daemon.config.to_toml import render
from daemon.contract.base import Problem
from daemon.contract.http.routes import PROBLEM_JSON
from daemon.contract.query import QueryResponse
from memory.openie.hipporag_file import HippoRAGFormatError, read_hipporag_file
from memory.openie.rules.extractor import RulesExtractor
from store.types import PassageText
from tests.e2e.real_hippod import Daemon
from tests.fuzz import format_inputs, inputs

SPLIT = SplitSettings()
REFUSALS = (400, 409, 413, 415, 422)
Run = Callable[[bytes], None]


@dataclass(frozen=True)
class Target:
    """`strategy` makes the inputs; `share` is the target's share of all inputs. `elsewhere`: the process that does the work, if
    it is another one."""

    strategy: Any
    run: Run
    share: float
    elsewhere: int | None = None


def _configuration(folder: Path, data: bytes) -> None:
    file = folder / "config.toml"
    file.write_bytes(data)
    try:
        config = load_config(file, {"HOME": str(folder)})
    except ConfigError as error:
        assert error.problems
        assert all(problem.isprintable() for problem in error.problems)
        return
    text = render(config)
    file.write_text(text, "utf-8")
    assert render(load_config(file, {"HOME": str(folder)})) == text


def _sound(documents: list[ParsedDocument]) -> None:
    """Checks what the store and the API require: texts in UTF-8, metadata that is JSON, a reason if there is nothing else."""
    for document in documents:
        document.uri.encode()
        document.title.encode()
        (document.error or "").encode()
        json.dumps(document.metadata, allow_nan=False).encode()
        assert document.passages or document.error or document.deleted
        for passage in document.passages:
            passage.text.encode()
            passage.title.encode()
            for triple in passage.triples or ():
                "".join(triple).encode()


def _json_documents(data: bytes) -> None:
    _sound(list(parse_data(data, b"a.json", "file:///a.json", SPLIT)))


def _json_lines(data: bytes) -> None:
    _sound(list(read_json_lines(data, "file:///a.jsonl#", SPLIT)))


def _file(data: bytes) -> None:
    ending, _, content = data.partition(format_inputs.SEPARATOR)
    given = content[: format_inputs.LARGEST], b"/drive/a." + ending, "file:///drive/a", SPLIT
    documents = list(parse_data(*given))
    _sound(documents)
    if len(content) < format_inputs.READ_TWICE:
        assert documents == list(parse_data(*given))


def _openie_file(folder: Path, data: bytes) -> None:
    file = folder / "openie.json"
    file.write_bytes(data)
    try:
        passages = list(read_hipporag_file(file))
    except HippoRAGFormatError:
        return
    for passage in passages:
        assert passage.problem or passage.text.strip()
        assert all(
            len(triple) == 3 and all(isinstance(part, str) and part for part in triple) for triple in passage.triples
        )
        json.dumps([passage.title, passage.text, passage.triples])


def _kafka_value(data: bytes) -> None:
    flags = data[0] if data else 0
    value, key, header, *_ = [*data[1:].split(inputs.SPLITTER), b"", b""]
    message = KafkaMessage(
        "coref",
        partition=3,
        offset=14,
        timestamp=(-1, 0, 1_700_000_000_000, 2**62)[flags & 3],
        key=key if flags & 4 else None,
        value=value if flags & 24 else None,
        headers=(("header", header or None), (header.decode("utf-8", "replace"), header)) if flags & 32 else (),
    )
    assert KafkaMessage.from_json(json.loads(json.dumps(message.to_json()))) == message
    documents = read_message(message, "text" if flags & 64 else "json", SPLIT)
    assert documents
    _sound(documents)
    origins = [document.metadata["kafka"] for document in documents]
    assert {(origin["topic"], origin["partition"], origin["offset"]) for origin in origins} == {message.coordinates}


def _extraction(extractor: RulesExtractor, data: bytes) -> None:
    for document in parse_data(data, b"a.json", "file:///a.json", SPLIT):
        passages = [PassageText(str(i), passage.title, passage.text) for i, passage in enumerate(document.passages)]
        for found in extractor.extract(passages):
            for triple in found.triples:
                assert len(triple) == 3
                "".join(triple).encode()


def _post(http: httpx2.Client, path: str, media_type: str, data: bytes) -> httpx2.Response:
    answer = http.post(path, content=data, headers={"Content-Type": media_type})
    if answer.status_code != 200:
        assert answer.status_code in REFUSALS, (answer.status_code, answer.text[:500])
        assert answer.headers["content-type"] == PROBLEM_JSON
        Problem.model_validate_json(answer.content)
    return answer


def _query(http: httpx2.Client, data: bytes) -> None:
    answer = _post(http, "/v1/query", "application/json", data)
    if answer.status_code == 200:
        QueryResponse.model_validate_json(answer.content)


def _sections() -> dict[str, tuple[bool, tuple[str, ...]]]:
    found = {}
    for name, field in Config.model_fields.items():
        kinds = [field.annotation, *getattr(field.annotation, "__args__", ())]
        model = next(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel))
        found[name] = (model is not field.annotation, tuple(model.model_fields))
    return found


FACTS: tuple[tuple[str, list[list[str]]], ...] = (
    ("Odile Brandt founded Project Lantern in Pellaston.", [["Odile Brandt", "founded", "Project Lantern"]]),
    ("Project Lantern measures Widow Shaft.", [["Project Lantern", "measures", "Widow Shaft"]]),
    ("Widow Shaft lies beneath Lake Ferrand.", [["Widow Shaft", "lies beneath", "Lake Ferrand"]]),
    ("Nothing is said here.", []),
)


@contextmanager
def targets(folder: Path) -> Iterator[dict[str, Target]]:
    """Yields all targets, over files in `folder` and a daemon that runs there."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        daemon = stack.enter_context(Daemon(folder / "daemon"))
        daemon.add(
            *(
                {"id": str(i), "title": text[:12], "text": text, "triples": given}
                for i, (text, given) in enumerate(FACTS)
            )
        )
        daemon.wait()
        assert daemon.process is not None
        yield {
            "configuration": Target(inputs.configurations(_sections()), partial(_configuration, folder), 0.15),
            "json-documents": Target(inputs.json_documents, _json_documents, 0.15),
            "json-lines": Target(inputs.json_lines, _json_lines, 0.15),
            "files": Target(format_inputs.files, _file, 0.05),
            "openie-files": Target(inputs.openie_files, partial(_openie_file, folder), 0.15),
            "kafka-values": Target(inputs.kafka_values, _kafka_value, 0.15),
            "queries": Target(inputs.query_bodies, partial(_query, daemon.http), 0.15, daemon.process.pid),
            "extraction": Target(inputs.json_documents, partial(_extraction, RulesExtractor()), 0.05),
        }
        assert daemon.process.poll() is None, "the daemon ended"
        assert daemon.events("request_failed") == [], daemon.events("request_failed")[:3]
