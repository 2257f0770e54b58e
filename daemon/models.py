"""What the configuration says of models, put together: the client, the limiter, the extractor, the filter."""

import asyncio
from collections.abc import Callable

import structlog

from daemon.config import Config, model_key
from daemon.logs import mask
from daemon.metrics import CALLS, DROPPED, FILTERED, TOKENS
from daemon.pipeline.backlog import Backlog, Learn
from daemon.pipeline.extraction import Extraction, Later, RulesInWorkers
from daemon.pipeline.paid import Paid
from daemon.services.extractions import Bulk
from memory.llm.client import ModelClient, ModelSettings
from memory.llm.limiter import Limiter
from memory.openie.llm import LLMExtractor, extractor_name
from memory.recognition import ModelFilter
from memory.types import Encoder
from store.made_with import made_with
from store.store import Store
from store.types import Extraction as Extracted
from store.types import PassageText

log = structlog.get_logger()

JOURNAL = "openie.jsonl"
GOOD = frozenset({"ok", "surrounded", "repaired", "cut off"})
MORE_WORKERS = 1.25
"""Passages under way for each call that is allowed at once: so the next call is there when one ends."""


def used(purpose: str, prompt: int, completion: int) -> None:
    TOKENS.labels(purpose, "prompt").inc(prompt)
    TOKENS.labels(purpose, "completion").inc(completion)


def model_settings(config: Config) -> ModelSettings | None:
    """What the client needs, None where no model is configured. The key is masked in the log from here on."""
    llm = config.llm
    if llm.base_url is None or llm.model is None:
        return None
    key = model_key(llm)
    if key is not None:
        mask(key)
    return ModelSettings(llm.base_url, llm.model, key, llm.timeout_s, llm.max_retries, llm.temperature)


class Models:
    """One daemon's models. On the event loop."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._heard: list[Backlog] = []
        settings = model_settings(config)
        self.client = ModelClient(settings, self._told, used) if settings is not None else None
        self.limiter = Limiter(config.openie.concurrency)
        self.filter = (
            ModelFilter(self.client, asyncio.get_running_loop(), lambda outcome: FILTERED.labels(outcome).inc())
            if self.client is not None
            else None
        )

    def _told(self, purpose: str, outcome: str) -> None:
        CALLS.labels(purpose, outcome).inc()
        if purpose in ("entities", "triples"):
            for backlog in self._heard:
                backlog.heard(outcome, good=outcome in GOOD)

    def extraction_name(self, rules: str) -> str:
        """What the configured extractor's extractions are kept under."""
        if self._config.openie.backend == "rules":
            return rules
        return extractor_name(self._config.llm.model or "")

    def backlog(self, store: Store, rules: RulesInWorkers, name: str, learn: Learn) -> Backlog:
        """The line of passages for the configured extractor."""
        paid = Paid(store.folder / JOURNAL, name)
        at_once = max(2, round(self._config.openie.concurrency * MORE_WORKERS))
        if self._config.openie.backend == "rules":

            async def by_rules(passage: PassageText) -> Extracted:
                return (await rules.extract([passage]))[0]

            return Backlog(store, name, by_rules, learn, paid, self._config.parsing.workers)
        if self._config.openie.backend == "vllm":

            async def never(_passage: PassageText) -> Extracted:
                raise AssertionError("passages are read by `backfill` only")

            return Backlog(store, name, never, learn, paid, 1, hold=True)
        assert self.client is not None
        extractor = LLMExtractor(self.client, self.limiter, lambda why, count: DROPPED.labels(why).inc(count))

        async def by_model(passage: PassageText) -> Extracted:
            return await extractor.read(passage, paid.entities, paid.found_entities)

        backlog = Backlog(store, name, by_model, learn, paid, at_once, probe=self.client.probe)
        self._heard.append(backlog)
        return backlog

    def at_commit(self, rules: Extraction, name: str) -> Extraction:
        """What reads a passage before it is committed: the rules themselves, or nothing but a stand-in."""
        if self._config.openie.backend == "rules":
            return rules
        return Later(name, rules if self._config.openie.fallback == "rules" else None)

    def bulk(self) -> Callable[[], Bulk] | None:
        """Loads vLLM and its model into this process, where it is configured."""
        llm, openie = self._config.llm, self._config.openie
        if openie.backend != "vllm" or llm.model is None:
            return None
        model = llm.model

        def load() -> Bulk:
            from memory.openie.vllm import VLLMExtractor

            return VLLMExtractor(model, llm.temperature, lambda why, count: DROPPED.labels(why).inc(count))

        return load

    async def close(self) -> None:
        if self.client is not None:
            await self.client.close()


def server_encoder(config: Config) -> Encoder:
    """The encoder behind a server. Its first answer says how long its vectors are; while it is away, the store knows that."""
    from memory.encoder.openai import ServerEncoder

    encoder, llm = config.encoder, config.llm
    base_url = encoder.base_url or llm.base_url
    assert base_url is not None
    key = model_key(llm)
    if key is not None:
        mask(key)
    prefixes = (encoder.query_prefix, encoder.passage_prefix)
    name = f"openai/{encoder.model}"
    made = made_with(config.store.path)
    known = made.dim if made is not None and made.name == name else None
    server = ServerEncoder(
        base_url, encoder.model, key, encoder.batch_size, llm.timeout_s, llm.max_retries, prefixes, known
    )
    if server.away is not None:
        log.warning("encoder_away", encoder=name, dim=known, error=server.away)
    return server
