"""Documents as files of records: equal for any reader and any number of runs, and equivalent to the documents' memory."""

import asyncio
import importlib.util
import json
import os
import platform
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import daemon.backfill.shards as shards_module
from consumers.folder.tree.default_exclusions import CACHE_SIGNATURE
from consumers.records.reader import read_file
from consumers.records.record import Record
from daemon import backfill_main
from daemon.backfill.shard_reader import ShardReader
from daemon.backfill.shards import BackfillError, shards
from daemon.config import load_config
from daemon.pipeline.record_import import import_records
from tests.daemon.pipeline.test_records import running

NAMES = ("Ada Lovelace", "Charles Babbage", "Mary Somerville")


def article(number):
    text = f"{NAMES[number % 3]} wrote letter {number} to {NAMES[(number + 1) % 3]}. Ada Lovelace lived in London."
    return {"id": f"a{number}", "title": f"Letter {number}", "text": text}


@pytest.fixture
def pile(tmp_path, monkeypatch):
    monkeypatch.setattr(shards_module, "SHARD_LINES", 4)
    folder = tmp_path / "pile"
    (folder / "notes").mkdir(parents=True)
    for name in (".hidden/secret.md", "#recycle/a/secret.md", "venv/secret.md", "cache/secret.md", "notes/secret.md~"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("# Not to be read")
    (folder / "venv" / "pyvenv.cfg").write_text("home = /usr/bin")
    (folder / "cache" / "CACHEDIR.TAG").write_bytes(CACHE_SIGNATURE)
    for number in range(5):
        (folder / "notes" / f"n{number}.md").write_text(f"# Note {number}\n\nMary Somerville taught pupil {number}.\n")
    (folder / "notes" / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    lines = [json.dumps(article(number)) for number in range(10)]
    lines[3] = "{no json"
    lines[7] = json.dumps({"text": "Charles Babbage designed the Difference Engine."})
    (folder / "letters.jsonl").write_text("\n".join(lines))
    pq.write_table(pa.Table.from_pylist([article(number) for number in range(20, 27)]), folder / "more.parquet")
    return folder


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[encoder]\nbackend = "hash"\nmodel = "64"\n[passages]\nmax_tokens = 60\nmin_tokens = 10\n')
    return load_config(file)


def read_all(config, work, out):
    reader = ShardReader(config, f"file://{out}")
    try:
        return sum(reader.read(shard)[1] for shard in work)
    finally:
        reader.close()


def written(folder: Path) -> list[Record]:
    """Returns the records of all files in a folder."""
    found = []
    for path in folder.iterdir():
        for record in read_file(path):
            assert isinstance(record, Record)
            found.append(record)
    return found


def contents(out):
    return {path.name: path.read_bytes() for path in Path(out).iterdir()}


@pytest.mark.process
def test_record_files_are_equal_for_any_order_and_import_all_documents(pile, config, tmp_path):
    work = list(shards([str(pile)]))
    first = read_all(config, work, tmp_path / "one")
    assert first == 6 + 10 + 7
    # Interrupted and continued in another order: the same files, and no document is read twice.
    assert read_all(config, work[::2], tmp_path / "two") + read_all(config, work[::-1], tmp_path / "two") == first
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    records = {record.uri: record for record in written(tmp_path / "one")}
    base = f"file://{pile}"
    assert len(records) == first
    assert {f"{base}/letters.jsonl#a9", f"{base}/letters.jsonl#line-8", f"{base}/more.parquet#a26"} <= set(records)
    failed = {uri.removeprefix(base) for uri, record in records.items() if record.document.error is not None}
    assert failed == {"/letters.jsonl#line-4", "/notes/broken.pdf"}
    assert all(record.vectors is not None for record in records.values() if record.document.passages)

    async def take(pipeline):
        for path in sorted((tmp_path / "one").iterdir()):
            assert (await import_records(pipeline, path)).unreadable == 0

    told = asyncio.run(running(tmp_path / "memory", take))[
        0
    ]  # with an extractor and an encoder that must not be called
    assert sum('"kind": "passage"' in line for line in told) == 5 + 9 + 7


def test_changed_input_file_changes_only_the_names_of_its_shards(pile, config):
    reading = {"extractor": "rules"}

    def names():
        return {shard.file_name(reading) for shard in shards([str(pile)])}

    before = names()
    assert names() == before
    os.utime(pile / "more.parquet", ns=(1, 1))
    assert len(names() & before) == len(before) - 2
    again = names()
    with (pile / "letters.jsonl").open("a") as file:
        file.write("\n" + json.dumps(article(99)))
    assert len(again & names()) == len(again) - 3
    assert {shard.file_name({"extractor": "llm"}) for shard in shards([str(pile)])}.isdisjoint(names())


def test_added_small_file_changes_at_most_two_groups(tmp_path):
    for number in range(200):
        (tmp_path / f"{number:03}.txt").write_text("x")
    before = {shard.file_name({}) for shard in shards([str(tmp_path)])}
    (tmp_path / "000a.txt").write_text("x")
    after = {shard.file_name({}) for shard in shards([str(tmp_path)])}
    assert len(before - after) <= 2
    assert 3 < len(before) < 60


@pytest.mark.process
def test_input_changed_during_the_read_is_an_error(pile, config, tmp_path):
    [work] = [shard for shard in shards([str(pile / "letters.jsonl")]) if shard.first == 1]
    with (pile / "letters.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(BackfillError, match="has changed since it was listed"):
        read_all(config, [work], tmp_path / "out")


class ScriptedLLM:
    """The part of vLLM's `LLM` that is used: every passage names the same two people."""

    def __init__(self, **_options):
        pass

    def chat(self, conversations, _options, use_tqdm):
        return [self._answer(messages[0]["content"]) for messages in conversations]

    def _answer(self, asked):
        names = {"named_entities": ["Ada Lovelace", "London"]}
        said = names if '"named_entities"' in asked else {"triples": [["Ada Lovelace", "lived in", "London"]]}
        output = SimpleNamespace(text=json.dumps(said), finish_reason="stop", token_ids=[0])
        return SimpleNamespace(outputs=[output], prompt_token_ids=[0])


@pytest.mark.process
def test_vllm_extracts_in_the_reader_and_a_missing_vllm_names_the_node(pile, tmp_path, monkeypatch):
    file = tmp_path / "vllm.toml"
    file.write_text('[encoder]\nbackend = "hash"\nmodel = "64"\n[openie]\nbackend = "vllm"\n[llm]\nmodel = "m"\n')
    config = load_config(file)
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(
        BackfillError, match=f"on {platform.node()}: vLLM is not installed; install hippod with the extra"
    ):
        ShardReader(config, f"file://{tmp_path}/out")
    decoding = SimpleNamespace(StructuredOutputsParams=dict)
    fake = SimpleNamespace(LLM=ScriptedLLM, SamplingParams=lambda **options: options, sampling_params=decoding)
    monkeypatch.setitem(sys.modules, "vllm", fake)
    assert read_all(config, list(shards([str(pile / "more.parquet")])), tmp_path / "out") == 7
    found = [each for record in written(tmp_path / "out") for each in record.extractions]
    assert None not in found
    assert {triple for each in found if each is not None for triple in each.triples} == {
        ("ada lovelace", "lived in", "london")
    }


def test_invalid_inputs_and_a_missing_ray_are_reported(pile, tmp_path, monkeypatch):
    with pytest.raises(BackfillError, match="absent"):
        list(shards([str(tmp_path / "absent")]))
    with pytest.raises(BackfillError, match="write s3://bucket/prefix"):
        list(shards(["ftp://host/x"]))
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(BackfillError, match="cannot be read as Parquet"):
        list(shards([str(tmp_path / "bad.parquet")]))
    file = tmp_path / "c.toml"
    file.write_text("")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    ran = CliRunner().invoke(backfill_main.main, [str(pile), "--out", str(tmp_path / "o"), "--config", str(file)])
    assert (ran.exit_code, "install hippod with its extra `ray`" in ran.stderr) == (1, True)
