"""Builds the configured models (client, limiter, OpenIE backend, filter, encoder) and the pool of parsing processes."""

import asyncio
from collections.abc import Callable
from functools import partial

import structlog

from consumers.parsing import Limits
from consumers.parsing.programs.installed import find_programs
from daemon.config import Config, model_key
from daemon.config.sections import Parsing
from daemon.costs.daily_budget import Budget, DailyBudget
from daemon.costs.estimate import CostEstimator
from daemon.costs.ledger import FILE as COSTS
from daemon.costs.ledger import CostLedger, Price, charged_to, source_of_passage
from daemon.model_settings import judge_settings, model_settings
from daemon.observe.logs import mask
from daemon.observe.metrics import CALLS, DROPPED, FILTERED, TOKENS
from daemon.parser_pool.children import ChildLimits
from daemon.parser_pool.pool import ParserPool, PooledExtractor
from daemon.pipeline.extraction.extractors import DeferredExtractor, PassageExtractor, ServerExtractor
from daemon.pipeline.extraction.journal import ExtractionJournal
from daemon.pipeline.extraction.queue import ExtractionQueue
from daemon.pipeline.outage import ModelOutage
from memory.encoder.calibration import calibrate, known_calibration
from memory.encoder.errors import EncoderUnavailable
from memory.encoder.registry import ENCODER_BACKENDS, EmbeddingServer, encoder_name, make_encoder
from memory.llm.client import ModelClient
from memory.llm.limiter import Limiter
from memory.llm.prompt_texts import read_prompt_files, replace_prompts
from memory.openie.registry import (
    OPENIE_BACKENDS,
    WORKER_BACKENDS,
    BulkBackend,
    BulkExtractor,
    ServerBackend,
    WorkerBackend,
)
from memory.retrieval.linking.query_model_calls import ModelEntities, ModelFilter
from memory.types import Encoder
from store.log.store_summary import StoreSummary
from store.store import Store
from store.types import Calibration, EncoderIdentity, Extraction, PassageText

log = structlog.get_logger()

JOURNAL = "openie.jsonl"
USABLE_OUTCOMES = frozenset({"ok", "surrounded", "repaired", "cut off", "incomplete"})
PROGRAM_SHARE = 0.75
"""Share of a document's time limit that one run of an external program may take. The rest lets the process report the
timeout."""
PASSAGES_PER_CALL = 1.25
"""Ratio of concurrently extracted passages to concurrent calls. Above 1, so that the next call is ready when a call ends."""


def price(config: Config) -> Price | None:
    """Returns the price of the model's tokens; None if none is configured."""
    prices = config.llm.price_per_million
    return None if prices is None else Price(*prices)


def budget(config: Config) -> Budget:
    """Returns the daily limits of `[llm]`."""
    return Budget(config.llm.budget_tokens_per_day, config.llm.budget_money_per_day)


def count_dropped(reason: str, count: int) -> None:
    DROPPED.labels(reason).inc(count)


class Models:
    """The models of one process. Use on the event loop."""

    def __init__(self, config: Config, store: Store | None = None, present: Callable[[], Config] | None = None) -> None:
        """The ledger is stored in the folder of `store`; without a store, it lasts as long as the process. `present` returns
        the configuration in force, from which prices and budgets are taken."""
        self._config = config
        present = present or (lambda: config)
        self.ledger = (
            CostLedger(None, lambda: price(present()))
            if store is None
            else CostLedger(store.folder / COSTS, lambda: price(present()), check=store.check_folder)
        )
        self.budget = DailyBudget(self.ledger, lambda: budget(present()))
        self.backend = OPENIE_BACKENDS[config.openie.backend]
        replace_prompts(read_prompt_files(config.llm.prompts) if config.llm.prompts is not None else {})
        self._outages: list[ModelOutage] = []
        """Outage detectors that are notified of the outcome of each extraction call."""
        settings = model_settings(config)
        self.client = ModelClient(settings, self._count_call, self._count_tokens) if settings is not None else None
        judging = judge_settings(config)
        self.judge = ModelClient(judging, self._count_call, self._count_tokens) if judging is not None else self.client
        """The model that judges answers."""
        self.limiter = Limiter(config.openie.concurrency)
        self.entities = ModelEntities(self.client, asyncio.get_running_loop()) if self.client is not None else None
        self.filter = (
            ModelFilter(self.client, asyncio.get_running_loop(), lambda outcome: FILTERED.labels(outcome).inc())
            if self.client is not None
            else None
        )

    def _count_call(self, purpose: str, outcome: str) -> None:
        CALLS.labels(purpose, outcome).inc()
        if purpose in ("entities", "triples"):
            for outage in self._outages:
                outage.note_call(outcome, good=outcome in USABLE_OUTCOMES)

    def _count_tokens(self, purpose: str, prompt: int, completion: int) -> None:
        TOKENS.labels(purpose, "prompt").inc(prompt)
        TOKENS.labels(purpose, "completion").inc(completion)
        self.ledger.count(purpose, prompt, completion)

    @property
    def estimator(self) -> CostEstimator:
        return CostEstimator(self.ledger.price, self.backend.calls_per_passage, self._at_once)

    @property
    def _at_once(self) -> int:
        """Number of passages that a model server extracts concurrently."""
        return max(2, round(self._config.openie.concurrency * PASSAGES_PER_CALL))

    @property
    def extractor_name(self) -> str:
        """Name under which the configured backend's extractions are stored."""
        return self.backend.extractor_name(self._config.llm.model or "")

    @property
    def present_names(self) -> tuple[str, ...]:
        """Names of the extractors that give the same extractions as the configured backend."""
        return self.backend.present_names(self._config.llm.model or "")

    def is_outdated(self, extractor: str) -> bool:
        """Returns whether the configured rules may find other triples than the rules named `extractor`; False for a model."""
        return isinstance(self.backend, WorkerBackend) and self.backend.is_outdated(extractor)

    @property
    def untagged_languages(self) -> frozenset[str]:
        """Languages whose taggers the configured rules need and lack; none for a model."""
        return self.backend.untagged_languages() if isinstance(self.backend, WorkerBackend) else frozenset()

    def extraction_queue(self, store: Store, before_commit: PassageExtractor | None) -> ExtractionQueue:
        """Returns the queue of committed passages for the configured backend."""
        backend, name = self.backend, self.extractor_name
        journal = ExtractionJournal(store.folder / JOURNAL, name, check=store.check_folder)
        match backend:
            case WorkerBackend():
                assert before_commit is not None

                async def by_worker(passage: PassageText) -> Extraction:
                    return (await before_commit.extract([passage]))[0]

                return ExtractionQueue(
                    store,
                    name,
                    by_worker,
                    journal,
                    self._config.parsing.workers,
                    free=True,
                    present_names=self.present_names,
                )
            case BulkBackend():

                async def never(_passage: PassageText) -> Extraction:
                    raise AssertionError("only `backfill` extracts passages")

                return ExtractionQueue(store, name, never, journal, 1, bulk_only=True, budget=self.budget)
            case ServerBackend():
                assert self.client is not None
                reader = backend.make(self.client, self.limiter, count_dropped)

                async def by_model(passage: PassageText) -> Extraction:
                    with charged_to(source_of_passage(store, passage.id)):
                        return await reader.read(passage, journal.entities, journal.found_entities)

                queue = ExtractionQueue(
                    store,
                    name,
                    by_model,
                    journal,
                    self._at_once,
                    probe=self.client.probe,
                    budget=self.budget,
                    estimate=self.estimator.estimate,
                )
                self._outages.append(queue.model)
                return queue

    def worker_extractor(self, pool: ParserPool) -> PooledExtractor | None:
        """Returns the extractor in the worker processes: the backend, or the fallback until a model has extracted the
        passage."""
        worker = self.backend if isinstance(self.backend, WorkerBackend) else None
        worker = worker or WORKER_BACKENDS.get(self._config.openie.fallback)
        return None if worker is None else PooledExtractor(pool, worker)

    def commit_extractor(self, worker: PassageExtractor | None) -> PassageExtractor:
        """Returns the extractor that runs before a commit: the fallback if the backend runs after the commit, otherwise the
        backend."""
        if isinstance(self.backend, WorkerBackend):
            assert worker is not None
            return worker
        return DeferredExtractor(self.extractor_name, worker)

    def reading_extractor(self, pool: ParserPool) -> PooledExtractor | ServerExtractor:
        """Returns the extractor for processes that commit nothing: the configured backend, without a fallback."""
        backend = self.backend
        match backend:
            case WorkerBackend():
                return PooledExtractor(pool, backend)
            case ServerBackend():
                assert self.client is not None
                reader = backend.make(self.client, self.limiter, count_dropped)
                extractor = ServerExtractor(self.extractor_name, reader, self.client.probe, self.budget)
                self._outages.append(extractor.model)
                return extractor
            case BulkBackend():
                raise ValueError(f'openie.backend = "{backend.name}" extracts in bulk only')

    def load_bulk_extractor(self) -> Callable[[], BulkExtractor] | None:
        """Returns a function that loads a bulk backend's model into this process; None for another backend."""
        backend, llm = self.backend, self._config.llm
        if not isinstance(backend, BulkBackend):
            return None
        return partial(backend.make, llm.model or "", llm.temperature, count_dropped)

    async def close(self) -> None:
        for client in {self.client, self.judge}:
            if client is not None:
                await client.close()
        self.ledger.close()


def load_encoder(config: Config, made_by: EncoderIdentity | None = None) -> Encoder:
    """Loads the configured encoder. Takes seconds; may run in any thread. Raises EncoderUnavailable.

    `made_by`: the encoder of the store, if there is a store. The dimension of an embedding server's vectors comes from its
    first answer; while the server is unreachable, from `made_by`.
    """
    section = config.encoder
    if not ENCODER_BACKENDS[section.backend].needs_server:
        return make_encoder(
            section.backend,
            section.model,
            section.batch_size,
            section.device,
            triple_query_prefix=section.triple_query_prefix,
            made_by=made_by,
        )
    server = _embedding_server(config, made_by)
    encoder = make_encoder(section.backend, section.model, section.batch_size, section.device, server)
    if encoder.start_error is not None:
        log.warning(
            "encoder_unreachable", encoder=encoder.identity.name, dim=encoder.identity.dim, error=encoder.start_error
        )
    return encoder


def calibration_for(encoder: Encoder, store: StoreSummary | None) -> Calibration:
    """Returns the encoder's calibration: a known calibration, or the calibration in `store` if this encoder made its vectors.
    Without either, measures the calibration, which takes seconds."""
    if (known := known_calibration(encoder.identity)) is not None:
        return known
    if store is not None and store.encoder == encoder.identity:
        return store.calibration
    found = calibrate(encoder)
    log.info(
        "encoder_calibrated",
        encoder=encoder.identity.name,
        synonym_threshold=found.synonym_threshold,
        weak_below=found.weak_below,
    )
    return found


def _embedding_server(config: Config, made_by: EncoderIdentity | None) -> EmbeddingServer:
    """Returns the settings of `[encoder]`, with `[llm]` as default. The key is masked in the log from here on.

    Raises EncoderUnavailable if the configuration names no server.
    """
    encoder, llm = config.encoder, config.llm
    base_url = encoder.base_url or llm.base_url
    if base_url is None:
        raise EncoderUnavailable(f"The encoder {encoder.model} needs its server: set [encoder] base_url.")
    key = model_key(llm)
    if key is not None:
        mask(key)
    same = made_by is not None and made_by.name == encoder_name(encoder.backend, encoder.model)
    known_dim = made_by.dim if made_by is not None and same else None
    return EmbeddingServer(
        base_url,
        key,
        llm.timeout_s,
        llm.max_retries,
        encoder.query_prefix,
        encoder.passage_prefix,
        encoder.triple_query_prefix,
        known_dim,
        encoder.phrase_query_prefix,
        encoder.name_query_prefix,
    )


def parser_pool(parsing: Parsing) -> ParserPool:
    limits = Limits(
        program_seconds=PROGRAM_SHARE * parsing.time_limit_s,
        ocr="off" if parsing.ocr == "off" else "later",
        programs=find_programs(parsing.ocr, parsing.ocr_languages),
    )
    return ParserPool(parsing.workers, ChildLimits(parsing.memory_bytes, parsing.time_limit_s), limits=limits)
