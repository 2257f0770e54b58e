"""The metrics for Prometheus, served at `/metrics`.

Each label has few values: `outcome` is a document's state, `stage` is one of `STAGES`, `reason` is a short fixed word
(`consumers.failure_codes`). `examples/grafana/README.md` lists all metrics.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from time import perf_counter

import prometheus_client
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from daemon.contract.status import BAD_SOURCE_STATES, DaemonState, Status

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # a second series for each counter, which says when its label was first seen
REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)
Counter = partial(prometheus_client.Counter, registry=REGISTRY)
Gauge = partial(prometheus_client.Gauge, registry=REGISTRY)
Histogram = partial(prometheus_client.Histogram, registry=REGISTRY)

STAGES = ("parse", "split", "extract", "encode", "commit")
FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.5, 10.0)
SLOW = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

DOCUMENTS = Counter("hippod_documents", "Documents committed, by their new state.", ["outcome"])
RECORDS = Counter("hippod_records", "Records that hippod-worker has sent, by state.", ["state"])
PASSAGES = Counter("hippod_passages", "Passages indexed for the first time.")
COMMITS = Counter("hippod_commits", "Commits of the store.")
FAILURES = Counter("hippod_failures", "Documents that failed or were skipped, by reason.", ["state", "reason"])
STAGE = Histogram(
    "hippod_stage_seconds",
    "Time of one step of the indexing of documents, by stage: parse, split, extract, encode, commit.",
    ["stage"],
    buckets=SLOW,
)
QUERY = Histogram("hippod_query_seconds", "Time of one query, by mode.", ["mode"], buckets=FAST)
QUERY_STAGE = Histogram("hippod_query_stage_seconds", "Time of one step of a query, by step.", ["stage"], buckets=FAST)
QUEUE = Gauge("hippod_queue_depth", "Waiting documents, passages or messages, by queue.", ["queue"])
QUEUE_BYTES = Gauge("hippod_queue_bytes", "Waiting bytes, by queue.", ["queue"])
QUEUE_LIMIT = Gauge("hippod_queue_limit", "Limit of a queue.", ["queue"])
QUEUE_LIMIT_BYTES = Gauge("hippod_queue_limit_bytes", "Limit of a queue in bytes.", ["queue"])

REQUESTS = Counter("hippod_http_requests", "Requests, by route and status.", ["method", "route", "status"])
REQUEST = Histogram("hippod_http_seconds", "Time until a request was answered.", ["route"], buckets=FAST)
REFUSED = Counter("hippod_http_refused", "Refused requests and closed connections, by reason.", ["reason"])
UNDER_WAY = Gauge("hippod_http_under_way", "Requests being served, by kind.", ["kind"])
CONNECTIONS = Gauge("hippod_http_connections", "Open connections, by side.", ["side"])

CALLS = Counter("hippod_model_calls", "Calls to the model, by purpose and outcome.", ["purpose", "outcome"])
DROPPED = Counter("hippod_triples_dropped", "Dropped triples of a model, by reason.", ["reason"])
FILTERED = Counter(
    "hippod_filter", "Queries to recognition memory, by outcome: kept some, emptied, remembered, skipped.", ["outcome"]
)
TOKENS = Counter("hippod_model_tokens", "Tokens sent to and received from the model, by purpose.", ["purpose", "kind"])
_COST_LABELS = ("source", "purpose")
CALLS_TODAY = Gauge(
    "hippod_model_calls_today",
    "Answered model calls of the present UTC day, by source of the extracted passages (empty: none) and purpose.",
    _COST_LABELS,
)
TOKENS_TODAY = Gauge(
    "hippod_model_tokens_today",
    "Tokens of the answered model calls of the present UTC day, by source of the extracted passages and purpose.",
    [*_COST_LABELS, "kind"],
)
MONEY_TODAY = Gauge(
    "hippod_model_money_today",
    "Money for the answered model calls of the present UTC day, by source of the extracted passages and purpose.",
    _COST_LABELS,
)
BUDGET_USED_UP = Gauge("hippod_budget_used_up", "1 while extraction waits for the next day's budget.")
MODEL_DOWN = Gauge("hippod_model_down", "1 while extraction waits for the model server.")
WAITING = Gauge("hippod_passages_waiting", "Passages that wait for the extractor.")

MEMORY = Gauge("hippod_memory_items", "Size of the memory, by kind.", ["kind"])
HELD = Gauge(
    "hippod_memory_held_bytes", "Memory of the daemon, without its child processes, that the kernel cannot reclaim."
)
MEMORY_LIMIT = Gauge("hippod_memory_limit_bytes", "[store] memory_limit in bytes; +Inf without a limit.")
PASSAGE_BYTES = Gauge("hippod_memory_bytes_per_passage", "Memory per passage; NaN until there is a trend.")
MEMORY_ROOM = Gauge(
    "hippod_memory_room_passages", "Number of further passages that fit below the limit; NaN if unknown."
)
MEMORY_FULL = Gauge(
    "hippod_memory_full_seconds",
    "Seconds until the limit is reached at the rate of the last ten minutes; +Inf if the memory does not grow.",
)
MEMORY_PAUSED = Gauge("hippod_memory_paused", "1 while additions wait for memory.")
COMMIT = Gauge("hippod_commit", "The last commit's number.")
LAG = Gauge("hippod_source_lag", "Known changes of a source that are not committed.", ["kind", "name"])
PARTITION_LAG = Gauge("hippod_kafka_lag", "Offsets of a partition that are not committed.", ["topic", "partition"])
LAST_SCAN = Gauge(
    "hippod_source_last_scan_timestamp_seconds",
    "Time of the last successful comparison of a folder with the memory.",
    ["name"],
)
SOURCE_UP = Gauge(
    "hippod_source_up", "1 while a source is followed; 0 while it is missing or in error.", ["kind", "name"]
)
STORE_BYTES = Gauge("hippod_store_bytes", "Size on disk, by table and other part.", ["part"])
DISK_FREE = Gauge("hippod_disk_free_bytes", "Free bytes on the store's file system.")
CHECKPOINT_TIME = Gauge("hippod_checkpoint_timestamp_seconds", "Time of the newest checkpoint.")
CHECKPOINT_COMMIT = Gauge("hippod_checkpoint_commit", "Commit of the newest checkpoint.")
SCOPES = Gauge("hippod_scopes", "Number of scopes in memory.")
SCOPE_BYTES = Gauge("hippod_scope_bytes", "Approximate bytes of the scopes in memory.")
PAST_COMMITS = Gauge("hippod_earlier_states", "Number of earlier commits in memory for questions with `as_of`.")
PAST_BYTES = Gauge(
    "hippod_earlier_state_bytes", "Approximate bytes of the earlier commits in memory for questions with `as_of`."
)
COMMIT_TROUBLE = Gauge("hippod_commit_trouble", "1 while the store refuses commits (for example, the disk is full).")
JOB = Histogram("hippod_job_seconds", "Time of one run of a scheduled job.", ["task"], buckets=SLOW)
JOB_FAILED = Counter("hippod_job_failures", "Runs of a scheduled job that failed.", ["task"])
JOB_DONE = Gauge("hippod_job_last_success_timestamp_seconds", "Time of the last success of a scheduled job.", ["task"])
READY = Gauge("hippod_ready", "1 while queries are answered.")
UPTIME = Gauge("hippod_uptime_seconds", "Seconds since the start.")


@contextmanager
def timed(stage: str) -> Iterator[None]:
    """Observes the wall time of the block, even if it fails, as one step of `stage`."""
    began = perf_counter()
    try:
        yield
    finally:
        STAGE.labels(stage).observe(perf_counter() - began)


for _stage in STAGES:  # created at the start, so that their rates are 0 instead of absent
    STAGE.labels(_stage)

_updates: list[Callable[[], None]] = []
_rendering = Lock()
"""Prevents concurrent requests from clearing each other's gauges."""


def at_scrape(update: Callable[[], None]) -> None:
    """Calls `update`, which sets gauges, before each answer to Prometheus, in any thread."""
    _updates.append(update)


def observe_query(mode: str, seconds: float, stages_ms: Mapping[str, float]) -> None:
    """Observes the time of a query and of its stages."""
    QUERY.labels(mode).observe(seconds)
    for stage, took_ms in stages_ms.items():
        QUERY_STAGE.labels(stage).observe(took_ms / 1000)


def render(status: Status | None) -> bytes:
    """Returns the metrics in Prometheus's text format. If `status` is given, updates the gauges that are derived from it."""
    with _rendering:
        READY.set(status is not None and status.state is DaemonState.READY)
        if status is not None:
            _set(status)
        for update in _updates:
            update()
        return prometheus_client.generate_latest(REGISTRY)


def _set(status: Status) -> None:
    counts = {
        "document": status.documents,
        "pending": status.pending,
        "failed": status.failed,
        "passage": status.passages,
        "phrase": status.phrases,
        "triple": status.triples,
        "relation edge": status.edges.relation,
        "mention edge": status.edges.mention,
        "context edge": status.edges.context,
        "synonym edge": status.edges.synonym,
    }
    for kind, count in counts.items():
        MEMORY.labels(kind).set(count)
    if (use := status.memory) is not None:
        HELD.set(use.used_bytes)
        MEMORY_LIMIT.set(math.inf if use.limit_bytes is None else use.limit_bytes)
        PASSAGE_BYTES.set(math.nan if use.bytes_per_passage is None else use.bytes_per_passage)
        MEMORY_ROOM.set(math.nan if use.room_passages is None else use.room_passages)
        MEMORY_FULL.set(math.inf if use.full_in_s is None else use.full_in_s)
        MEMORY_PAUSED.set(use.paused is not None)
    COMMIT.set(status.commit)
    UPTIME.set(status.uptime_s)
    LAG.clear()
    PARTITION_LAG.clear()
    for source in status.sources:
        SOURCE_UP.labels(source.kind, source.name).set(source.state not in BAD_SOURCE_STATES)
        scanned = getattr(source, "last_scan_at", None)
        if scanned is not None:
            LAST_SCAN.labels(source.name).set(scanned)
        if source.lag is not None:
            LAG.labels(source.kind, source.name).set(source.lag)
        for each in getattr(source, "partitions", ()):
            PARTITION_LAG.labels(each.topic, str(each.partition)).set(each.lag)
