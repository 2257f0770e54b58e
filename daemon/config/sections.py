"""The sections of the configuration, and the type, default and meaning of each key.

`daemon.config.model_sections` contains the sections about models. `config.toml` repeats the defaults in comments, and classes
of settings that are also used without a configuration repeat some of them; tests compare the defaults.
"""

import grp
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator

from consumers.kafka.settings import KafkaSettings
from consumers.splitting import SplitSettings
from daemon.config_types.mounts import private_tmp_problem
from daemon.config_types.path_validators import directory_to_be, token_in
from daemon.config_types.values import (
    AnyPath,
    Count,
    Duration,
    Interval,
    MemoryLimit,
    MiB,
    Names,
    OptionalNames,
    OptionalPath,
    OptionalText,
    Seconds,
    Section,
    at,
    optional_number,
)
from daemon.config_types.values import Size as Bytes
from daemon.contract.paths import SOCKET, SOCKET_BYTES_MAX, STORE
from memory.answering.working_memory.declared_settings import DEEP_SETTINGS
from memory.retrieval.modes import DEFAULT_MODE, MODES
from memory.retrieval.settings import SETTINGS

_TCP = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+):(?P<port>[0-9]{1,5})", re.ASCII)


class Store(Section):
    path: Annotated[AnyPath, AfterValidator(directory_to_be)] = STORE
    """Directory of the store; created with its parents if it is missing."""
    keep_versions: Duration = 7 * 86400.0
    """How long hippod keeps versions that a newer commit replaced."""
    memory_limit: MemoryLimit = "auto"
    """Maximum memory that the system cannot reclaim; near it, sources pause. auto: 80 % of the machine's memory."""


def _socket(path: Path) -> Path:
    size = len(os.fsencode(path))
    if size > SOCKET_BYTES_MAX:
        raise ValueError(f"a path of at most {SOCKET_BYTES_MAX} bytes, the limit of Unix sockets; {path} has {size}")
    if problem := private_tmp_problem(path):
        raise ValueError(f"a path that clients can reach; {problem}, or in /run/hippod")
    return path


def _mode(mode: Any) -> str:
    if not isinstance(mode, str) or not re.fullmatch("0?[0-7]{3}", mode):
        raise ValueError('octal permissions in quotes, from "0000" to "0777", such as "0660"')
    return mode


def _group(group: str | None) -> str | None:
    if group is not None:
        try:
            grp.getgrnam(group)
        except (KeyError, ValueError):
            raise ValueError(f'a group of this machine; create it ("groupadd {group}") or leave the key out') from None
    return group


def _tcp(address: str | None) -> str | None:
    if address is None or address == "off":
        return None
    match = _TCP.fullmatch(address)
    if match is None or not 1 <= int(match["port"]) <= 65535:
        raise ValueError('host:port such as "127.0.0.1:7411" or "[::1]:7411", or "off"')
    return address


class Api(Section):
    socket: Annotated[AnyPath, AfterValidator(_socket)] = SOCKET
    """Path of the Unix socket."""
    mode: Annotated[str, BeforeValidator(_mode)] = "0660"
    group: Annotated[OptionalText, AfterValidator(_group)] = None
    """Group of the socket."""
    tcp: Annotated[OptionalText, AfterValidator(_tcp)] = None
    """host:port to listen on, in addition to the socket."""
    token_file: Annotated[OptionalPath, AfterValidator(token_in)] = None
    """File with the bearer token that TCP clients must send."""
    request_bytes: Bytes = 16 * MiB
    """Maximum size of a request's body."""
    lines_bytes: Bytes = 64 * MiB
    """Maximum size of a body of JSON lines, which are parsed one by one."""
    import_bytes: Bytes = 1024 * MiB
    """Maximum size of a file for `import`, which is kept on disk while it is read."""
    requests_per_s: Annotated[float, Field(ge=0, le=1_000_000)] = 1000.0
    """Requests per second of one client (a `[[client]]`, otherwise a token, otherwise a user of the socket or an address on
    TCP); further requests are refused with 429. 0: no limit."""
    connections: Annotated[int, Field(ge=8, le=1_000_000)] = 512
    """Maximum open connections, separately for the socket and for TCP; fewer if the system allows fewer open files."""
    concurrent_queries: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Maximum concurrent queries; further ones are refused with 503."""
    concurrent_asks: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Maximum questions that the model answers concurrently."""
    concurrent_exports: Annotated[int, Field(ge=1, le=1000)] = 4
    event_readers: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Maximum clients that follow events (`hippoctl watch`) concurrently."""
    concurrent_waits: Annotated[int, Field(ge=1, le=100_000)] = 256
    """Maximum requests that wait for documents concurrently (`wait`, queries with `after`)."""
    concurrent_as_of: Annotated[int, Field(ge=1, le=1000)] = 8
    """Maximum concurrent queries of an earlier state (`as_of`). Earlier states are loaded one at a time. These queries do not
    count towards `concurrent_queries`."""
    client_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Maximum share of each limit (connections, request bodies, concurrent work) that one client may use; the share shrinks
    while other clients use a part of the limit. 1: no limit per client."""

    @property
    def mode_bits(self) -> int:
        return int(self.mode, 8)

    @property
    def tcp_address(self) -> tuple[str, int] | None:
        """Returns host (an IPv6 address without brackets) and port."""
        if self.tcp is None:
            return None
        host, _, port = self.tcp.rpartition(":")
        return host.strip("[]"), int(port)


def _tcp_or_socket(address: str | None) -> str | None:
    if address is not None and address.startswith("/"):
        return str(_socket(Path(address)))
    return _tcp(address)


class Passages(Section):
    max_tokens: Annotated[int, Field(ge=16, le=8192)] = 400
    """Maximum length of a passage, in words and punctuation marks."""
    min_tokens: Annotated[int, Field(ge=1, le=8192)] = 40
    """Minimum length of a passage; shorter pieces are joined to their neighbours."""

    @property
    def split(self) -> SplitSettings:
        return SplitSettings(self.max_tokens, self.min_tokens)

    @model_validator(mode="after")
    def _min_below_max(self) -> "Passages":
        if self.min_tokens > self.max_tokens:
            raise at("min_tokens", f"at most passages.max_tokens, which is {self.max_tokens}")
        return self


class Parsing(Section):
    workers: Annotated[int, Field(ge=1, le=256)] = 2
    """Number of processes that parse documents."""
    time_limit_s: Seconds = 60.0
    """Time limit for parsing a document; only that document fails."""
    memory_bytes: Bytes = 1024 * MiB
    """Memory limit for parsing a document; only that document fails."""
    ocr: Literal["auto", "off"] = "auto"
    """Whether pages without a text layer and pictures are read by OCR, if Tesseract is installed."""
    ocr_languages: OptionalNames = ()
    """Tesseract's names of languages. Empty: all installed languages, or English if more than four are installed."""

    @model_validator(mode="after")
    def _languages_are_names(self) -> Self:
        if not all(re.fullmatch(r"(?:script/)?[A-Za-z][A-Za-z0-9_]{1,40}", name) for name in self.ocr_languages):
            raise at("ocr_languages", 'Tesseract\'s names of languages, such as ["eng", "deu"]')
        return self


class Graph(Section):
    synonym_threshold: Literal["auto"] | Annotated[float, Field(gt=0, le=1)] = "auto"
    """Minimum cosine of synonyms; auto: the encoder's own (`memory.encoder.calibration`)."""
    synonym_max: Count = 100
    """Has no effect; accepted from older configurations."""
    synonym_variants: bool = True
    """Whether synonyms must also be variants of one wording; false: the cosine alone decides, as in HippoRAG."""


if TYPE_CHECKING:

    class _DeclaredRetrievalKeys(Section):
        mode: str = DEFAULT_MODE

else:
    _DeclaredRetrievalKeys = create_model(
        "_DeclaredRetrievalKeys",
        __base__=Section,
        mode=(Literal[tuple(MODES)], DEFAULT_MODE),
        **{
            each.name: (
                Literal[each.choices] if each.choices else Annotated[each.kind, Field(**each.bounds)],
                each.default,
            )
            for each in SETTINGS.values()
        },
    )


class Retrieval(_DeclaredRetrievalKeys):
    # memory.retrieval declares modes and settings; the keys here are the daemon's own.
    filter: Literal["auto", "llm", "none"] = "auto"
    """Recognition memory: selects the linked triples that matter for the query. auto: by the model if one is configured."""
    filter_timeout_s: Seconds = 5.0
    """Time limit of recognition memory, and of a model that names a query's entities; after this time, the query continues
    without the result."""
    keep_sessions: Duration = 30 * 86400.0
    """How long a session of `hippoctl ask --session` is kept after its last question."""


if TYPE_CHECKING:
    _DeclaredDeepKeys = Section
else:
    _DeclaredDeepKeys = create_model(
        "_DeclaredDeepKeys",
        __base__=Section,
        **{
            each.name: (
                optional_number(**each.bounds) if each.default is None else Annotated[each.kind, Field(**each.bounds)],
                each.default,
            )
            for each in DEEP_SETTINGS.values()
        },
    )


class Deep(_DeclaredDeepKeys):
    """Settings of `hippoctl ask --deep`, declared in memory.answering.working_memory.declared_settings."""


class MCP(Section):
    write: bool = False
    """Whether agents may use the tools that add and remove documents, over HTTP and by `hippoctl mcp`."""


class Worker(Section):
    brokers: Names = ("localhost:9092",)
    topics: OptionalNames = ()
    """Topics of articles; hippod-worker needs at least one."""
    group: Annotated[str, Field(min_length=1)] = "hippod-worker"
    """Consumer group; its workers share the topics."""
    output: OptionalText = None
    """Topic for the records; hippod-worker needs it."""
    format: Literal["json", "text"] = "json"
    start: Literal["earliest", "latest"] = "earliest"
    """Where to begin in a topic for which the group has no offset."""
    dead_letter: OptionalText = None
    """Topic for unreadable messages; without it, these messages become records of failed documents."""
    encode: bool = True
    """Whether the worker encodes records; otherwise the receiver does."""
    message_bytes: Annotated[Bytes, Field(ge=16 * 1024)] = 900_000
    """Maximum size of a sent message; a larger record is sent in parts. The topic must accept this size."""
    concurrency: Count = 16
    """Maximum messages processed concurrently."""
    buffer_messages: Count = 1000
    """Maximum messages that are fetched but not yet sent as records; above it, the partitions are paused."""
    buffer_bytes: Bytes = 64 * MiB
    """Like `buffer_messages`, in bytes."""
    listen: Annotated[OptionalText, AfterValidator(_tcp_or_socket)] = None
    """Address of /healthz and /metrics: host:port, or the path of a Unix socket."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options for kafka-python."""

    @property
    def settings(self) -> KafkaSettings:
        return KafkaSettings(
            self.brokers, self.topics, self.group, self.format, self.start, self.dead_letter, self.options
        )


def _backup_url(url: str | None) -> str | None:
    if url is not None and not re.fullmatch(r"s3://[^/\x00]+(/[^\x00]*)?|file:///[^\x00]+", url):
        raise ValueError('a URL such as "s3://bucket/prefix" or "file:///mnt/backups/hippod"')
    if url is not None and url.startswith("file://") and (problem := private_tmp_problem(Path(url[len("file://") :]))):
        raise ValueError(f"a URL of a place that lasts; {problem}")
    return url


class ScheduleTimes(Section):
    compact: Interval = 600.0
    """Interval of compaction: rewrites tables with many files, deletes what no kept commit needs, and frees memory."""
    snapshot: Interval = 900.0
    """Interval of checkpoints, from which a start is fast; merges the graph's changes first."""
    rescan: Interval = 600.0
    """Interval at which each folder is compared with the memory, for changes that no event reported."""
    retry: Interval = 60.0
    """Interval of retries of failed documents that are due."""
    backup: Interval = 0.0
    """Interval of backups to `backup_to`."""
    backup_to: Annotated[OptionalText, AfterValidator(_backup_url)] = None
    """Target of backups: "s3://bucket/prefix", or "file:///folder" on another disk."""
    backup_keep: Duration = 30 * 86400.0
    """How long backups are kept at the target; the newest is always kept."""

    @model_validator(mode="after")
    def _backup_has_a_place(self) -> Self:
        if self.backup and self.backup_to is None:
            raise at(
                "backup_to", 'must be set together with backup: the target of backups, such as "s3://bucket/prefix"'
            )
        return self


LogLevel = Literal["debug", "info", "warning", "error"]


class Daemon(Section):
    stop_timeout_s: Annotated[float, Field(ge=1, le=3600)] = 30.0
    """Maximum duration of a stop; unfinished work is then returned to its source."""
    log_level: LogLevel = "info"
    inbox_documents: Count = 100_000
    """Maximum added documents (`add`) that wait to be indexed; further ones are refused with 503, and a single request with
    more documents with 413."""
    inbox_bytes: Bytes = 256 * MiB
    """Like `inbox_documents`, in bytes; added documents are kept on disk and in memory until they are indexed."""
    queue_passages: Annotated[int, Field(ge=1, le=1_000_000)] = 768
    """Maximum passages that are parsed but not committed; above it, parsing waits. Fresh work has a separate limit of the same
    size."""
    queue_bytes: Bytes = 64 * MiB
    """Like `queue_passages`, in bytes of text."""
