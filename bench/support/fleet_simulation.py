"""The cost of a hundred million articles, from rates measured here on real passages.

Measured: processor seconds and bytes per passage for extraction (by rules), encoding, writing the record, and applying it.
Assumed and named: the rate of a model on one GPU, tokens and prices, the number of machines. All costs are linear in the number
of passages, except that commits become slower: 730 passages a second at 2,000 passages, 412 at 100,000 (`bench growth`).
"""

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.support.data import CORPUS
from bench.support.tables import table
from consumers.json_documents import read_json_document
from consumers.records.record import SourcePosition
from consumers.records.writer import write_file
from consumers.splitting import SplitSettings
from daemon.fleet.record_maker import PositionedDocument, RecordMaker
from daemon.pipeline.ownership import Owners
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.record_import import import_records
from memory.encoder import make_encoder
from memory.openie.rules.extractor import RulesExtractor
from store.store import Store
from tests.daemon.pipeline.test_records import Reader, Refusing, Rules

ARTICLES = 100_000_000
PASSAGES_AN_ARTICLE = 5
"""Number of passages of about 120 words in a news article of 600 words."""
SAMPLE = 400
ENCODER = "all-MiniLM-L6-v2"

WORKER_CORES = 1000
GPU_PASSAGES_A_SECOND = 23.0
"""Computed in docs/how-to/models.md from published rates of an 8B model on one H100."""
GPUS = 100
GPU_HOUR = 2.5
PROMPT_TOKENS, COMPLETION_TOKENS = 982.0, 247.0
"""Tokens per passage of both calls together (docs/how-to/models.md)."""
PROMPT_PRICE, COMPLETION_PRICE = 0.15, 0.60
"""Price of a million tokens."""
CORE_HOUR = 0.04
GROWTH = 730 / 412
"""Ratio of the time of a commit at 100,000 passages to the time at 2,000 passages (README.md)."""
MEMORY_BYTES_A_PASSAGE = 13_000
"""3 KB of anonymous memory, and 10 KB of file pages that queries read (docs/explanation/scale.md)."""
MACHINE_GIB = 256


def simulate(results: dict[str, Any]) -> str:
    """Fills `results["measured"]` and `results["derived"]`; returns Markdown."""
    measured = results["measured"] = _measure()
    derived = results["derived"] = _derive(measured)
    per_passage = [(name, f"{value:,.3f}") for name, value in measured.items()]
    whole = [(name, f"{value:,.1f}") for name, value in derived.items()]
    return "\n\n".join(
        [
            table(("measured here, a passage", ""), per_passage),
            table((f"derived, for {ARTICLES:,} articles", ""), whole),
        ]
    )


def _articles() -> list[dict[str, Any]]:
    if CORPUS.exists():
        return [{"title": each["title"], "text": each["text"]} for each in json.loads(CORPUS.read_text())[:SAMPLE]]
    return [
        {"title": f"Town {n}", "text": f"Town {n} lies on river {n % 97}. Mayor {n % 31} of Town {n} met Ada Lovelace."}
        for n in range(SAMPLE)
    ]


def _measure() -> dict[str, float]:
    encoder = make_encoder("sentence-transformers", ENCODER, 64, "cpu")
    encoder.encode(["warm"])
    documents = [
        PositionedDocument(
            read_json_document(each, "file:///a#", str(number), SplitSettings(256, 32)),
            SourcePosition("kafka:articles/0", number, number),
        )
        for number, each in enumerate(_articles())
    ]
    passages = sum(len(each.document.passages) for each in documents)
    maker = RecordMaker(Rules(), encoder)

    def cpu(began: float) -> float:
        return (time.process_time() - began) / passages

    RulesExtractor().extract([])
    began = time.process_time()
    read = asyncio.run(maker.extracted(documents))
    extract_s, began = cpu(began), time.process_time()
    records = asyncio.run(maker.encoded(read))
    encode_s = cpu(began)
    with tempfile.TemporaryDirectory(prefix="hippod-bench-") as place:
        path = Path(place, "records.parquet")
        began = time.process_time()
        write_file(path, records)
        write_s, size = cpu(began), path.stat().st_size
        began = time.process_time()

        reader: Any = Reader()

        async def apply() -> None:
            with Store(Path(place, "store"), encoder.identity) as store:
                pipeline = Pipeline(store, encoder, Refusing(), reader, lambda *_, **__: None, 1, owners=Owners())
                pipeline.start()
                await import_records(pipeline, path)
                await pipeline.drained()
                await pipeline.stop(5)
                store.compact()

        asyncio.run(apply())
        apply_s = cpu(began)
        disk = sum(each.stat().st_size for each in Path(place, "store").rglob("*") if each.is_file())
    return {
        "passages in the sample": passages,
        "triples a passage": sum(len(e.triples) for r in records for e in r.extractions if e is not None) / passages,
        "rules, processor ms": extract_s * 1000,
        "encoding passage, phrases and triples, processor ms": encode_s * 1000,
        "writing a record, processor ms": write_s * 1000,
        "applying a record, processor ms": apply_s * 1000,
        "record, KB": size / passages / 1000,
        "store on disk, KB": disk / passages / 1000,
    }


def _derive(measured: dict[str, float]) -> dict[str, float]:
    passages = ARTICLES * PASSAGES_AN_ARTICLE
    read_ms = sum(measured[f"{name}, processor ms"] for name in ("rules", "writing a record"))
    read_ms += measured["encoding passage, phrases and triples, processor ms"]
    core_hours = passages * read_ms / 3.6e6
    gpu_hours = passages / GPU_PASSAGES_A_SECOND / 3600
    apply_days = passages * measured["applying a record, processor ms"] * GROWTH / 8.64e7
    memory_gib = passages * MEMORY_BYTES_A_PASSAGE / 2**30
    memories = memory_gib / (MACHINE_GIB * 0.7)
    tokens = passages * (PROMPT_TOKENS * PROMPT_PRICE + COMPLETION_TOKENS * COMPLETION_PRICE) / 1e6
    return {
        "passages": float(passages),
        f"reading by rules, and encoding: days on {WORKER_CORES} cores": core_hours / WORKER_CORES / 24,
        f"reading by rules, and encoding: money at {CORE_HOUR} a core-hour": core_hours * CORE_HOUR,
        f"reading by a model: days on {GPUS} GPUs": gpu_hours / GPUS / 24,
        f"reading by a model: money at {GPU_HOUR} a GPU-hour": gpu_hours * GPU_HOUR,
        f"reading by a paid API: money at {PROMPT_PRICE} and {COMPLETION_PRICE} a million tokens": tokens,
        "records in the topic, TB": passages * measured["record, KB"] / 1e9,
        "one memory of all: days to apply (one core commits)": apply_days,
        "one memory of all: GiB of memory": memory_gib,
        f"memories, on machines of {MACHINE_GIB} GiB that are filled to 70 %": memories,
        "days to apply, when each memory takes its share": apply_days / memories,
        "stores on disk, TB": passages * measured["store on disk, KB"] / 1e9,
        "money a month for that memory, at 3 a GiB": memory_gib * 3,
    }
