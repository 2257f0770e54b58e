"""What Prometheus reads: counted where it happens, served at `/metrics`.

Labels take few values: an outcome is a document's state, a stage one of `STAGES`, a reason a short fixed word.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from daemon.contract import Status

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

STAGES = ("parse", "extract", "encode", "commit")
FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.5, 10.0)
SLOW = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

DOCUMENTS = Counter(
    "hippod_documents", "Documents committed, by the state they came to.", ["outcome"], registry=REGISTRY
)
PASSAGES = Counter("hippod_passages", "Passages indexed for the first time.", registry=REGISTRY)
COMMITS = Counter("hippod_commits", "Commits of the store.", registry=REGISTRY)
FAILURES = Counter(
    "hippod_failures", "Documents that failed or were skipped, by reason.", ["reason"], registry=REGISTRY
)
STAGE = Histogram("hippod_stage_seconds", "Time in one step of a stage.", ["stage"], buckets=SLOW, registry=REGISTRY)
QUERY = Histogram("hippod_query_seconds", "Time of one query, by mode.", ["mode"], buckets=FAST, registry=REGISTRY)
QUEUE = Gauge("hippod_queue_depth", "What waits, by queue.", ["queue"], registry=REGISTRY)

REQUESTS = Counter(
    "hippod_http_requests", "Requests, by route and status.", ["method", "route", "status"], registry=REGISTRY
)
REQUEST = Histogram(
    "hippod_http_seconds", "Time until a request was answered.", ["route"], buckets=FAST, registry=REGISTRY
)
REFUSED = Counter(
    "hippod_http_refused", "Requests turned away and connections cut off, by reason.", ["reason"], registry=REGISTRY
)
UNDER_WAY = Gauge("hippod_http_under_way", "Requests being served, by kind.", ["kind"], registry=REGISTRY)
CONNECTIONS = Gauge("hippod_http_connections", "Open connections, by side.", ["side"], registry=REGISTRY)

CALLS = Counter(
    "hippod_model_calls", "Calls to the model, by purpose and outcome.", ["purpose", "outcome"], registry=REGISTRY
)
DROPPED = Counter(
    "hippod_triples_dropped", "Triples of a model's that were dropped, by reason.", ["reason"], registry=REGISTRY
)
FILTERED = Counter(
    "hippod_filter",
    "Queries to recognition memory: kept some, emptied, remembered, skipped.",
    ["outcome"],
    registry=REGISTRY,
)
TOKENS = Counter("hippod_model_tokens", "Tokens of committed extractions, by kind.", ["kind"], registry=REGISTRY)
WAITING = Gauge("hippod_passages_waiting", "Passages that wait for the extractor.", registry=REGISTRY)

MEMORY = Gauge("hippod_memory_items", "What the memory holds, by kind.", ["kind"], registry=REGISTRY)
COMMIT = Gauge("hippod_commit", "The last commit's number.", registry=REGISTRY)
LAG = Gauge(
    "hippod_source_lag", "Changes a source knows of that are not committed.", ["kind", "name"], registry=REGISTRY
)
PARTITION_LAG = Gauge(
    "hippod_kafka_lag", "Offsets of a partition that are not committed.", ["topic", "partition"], registry=REGISTRY
)
UPTIME = Gauge("hippod_uptime_seconds", "Seconds since the start.", registry=REGISTRY)


@contextmanager
def timed(stage: str) -> Iterator[None]:
    """Counts the block's wall time under `stage`, whether it succeeds or not."""
    began = perf_counter()
    try:
        yield
    finally:
        STAGE.labels(stage).observe(perf_counter() - began)


def render(status: Status | None) -> bytes:
    """The text exposition format, with the gauges that follow from `status` set first where there is one."""
    if status is not None:
        _set(status)
    return generate_latest(REGISTRY)


def _set(status: Status) -> None:
    counts = {
        "document": status.documents,
        "pending": status.pending,
        "failed": status.failed,
        "passage": status.passages,
        "phrase": status.phrases,
        "triple": status.triples,
        "relation edge": status.edges.relation,
        "context edge": status.edges.context,
        "synonym edge": status.edges.synonym,
    }
    for kind, count in counts.items():
        MEMORY.labels(kind).set(count)
    COMMIT.set(status.commit)
    UPTIME.set(status.uptime_s)
    LAG.clear()
    PARTITION_LAG.clear()
    for source in status.sources:
        if source.lag is not None:
            LAG.labels(source.kind, source.name).set(source.lag)
        for each in (source.model_extra or {}).get("partitions") or ():
            PARTITION_LAG.labels(each["topic"], str(each["partition"])).set(each["lag"])
