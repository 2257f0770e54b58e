"""The sections of the configuration and what each key means; the contract of what may be written.

Defaults here are the only ones: `config.toml` repeats them in comments, and a test keeps the two equal.
"""

import grp
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator
from pydantic_core import PydanticCustomError

from consumers.kafka.settings import KafkaSettings
from daemon.config_types.mounts import private_tmp_problem
from daemon.config_types.path_validators import directory_to_be, readable_secret, token_in, usable_prompts
from daemon.config_types.paths import SOCKET, STORE
from daemon.config_types.section import MiB, Section
from daemon.config_types.values import (
    AnyPath,
    Count,
    Duration,
    Interval,
    MemoryLimit,
    Names,
    OptionalNames,
    OptionalPath,
    OptionalText,
    Seconds,
    optional_number,
    or_none,
)
from daemon.config_types.values import Size as Bytes
from memory.answering.working_memory.declared_settings import DEEP_SETTINGS
from memory.encoder.registry import ENCODER_BACKENDS
from memory.openie.registry import OPENIE_BACKENDS, WORKER_BACKENDS
from memory.retrieval.modes import DEFAULT_MODE, MODES
from memory.retrieval.settings import SETTINGS

if TYPE_CHECKING:
    EncoderBackendName = str
    OpenIEBackendName = str
    FallbackName = str
else:  # type checkers cannot use names that are computed at run time
    EncoderBackendName = Literal[tuple(ENCODER_BACKENDS)]
    OpenIEBackendName = Literal[tuple(OPENIE_BACKENDS)]
    FallbackName = Literal[("none", *WORKER_BACKENDS)]

_SOCKET_BYTES = 107  # sun_path of sockaddr_un has 108 bytes, the last one a NUL.
_TCP = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+):(?P<port>[0-9]{1,5})", re.ASCII)


def at(key: str, message: str) -> PydanticCustomError:
    """Returns an error about one key for a validator of the whole section."""
    return PydanticCustomError("at_key", "{message}", {"key": key, "message": message})


class Store(Section):
    path: Annotated[AnyPath, AfterValidator(directory_to_be)] = STORE
    """Directory of the store; made when absent, with its parents."""
    keep_versions: Duration = 7 * 86400.0
    """How long versions that a newer commit replaced are kept before maintenance deletes them."""
    memory_limit: MemoryLimit = "auto"
    """How much memory that the system cannot drop hippod may take; near it, sources pause. auto: 80 % of the machine's."""


def _socket(path: Path) -> Path:
    size = len(os.fsencode(path))
    if size > _SOCKET_BYTES:
        raise ValueError(f"a path of at most {_SOCKET_BYTES} bytes, the limit of Unix sockets; {path} has {size}")
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
    """Group that the socket is given to."""
    tcp: Annotated[OptionalText, AfterValidator(_tcp)] = None
    """host:port to listen on besides the socket."""
    token_file: Annotated[OptionalPath, AfterValidator(token_in)] = None
    """File with the bearer token that TCP clients must send."""
    request_bytes: Bytes = 16 * MiB
    """Largest body of a request."""
    lines_bytes: Bytes = 64 * MiB
    """Largest body of JSON lines, which are read one by one."""
    import_bytes: Bytes = 1024 * MiB
    """Largest file that `import` takes, which is kept on disk while it is read."""
    requests_per_s: Annotated[float, Field(ge=0, le=1_000_000)] = 1000.0
    """Requests of one client (a `[[client]]`, else a token, else a user of the socket or an address on TCP); those beyond are
    refused with 429. 0: no limit."""
    connections: Annotated[int, Field(ge=8, le=1_000_000)] = 512
    """Open connections, on the socket and on TCP each; fewer where the system allows fewer open files."""
    concurrent_queries: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Queries worked on at once; those beyond are refused with 503."""
    concurrent_asks: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Questions that the model answers at once."""
    concurrent_exports: Annotated[int, Field(ge=1, le=1000)] = 4
    event_readers: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Clients that follow events (`hippoctl watch`) at once."""
    concurrent_waits: Annotated[int, Field(ge=1, le=100_000)] = 256
    """Requests that wait for documents to be indexed at once: `wait`, and queries with `after`."""
    concurrent_as_of: Annotated[int, Field(ge=1, le=1000)] = 8
    """Queries of an earlier state (`as_of`) at once. They are loaded one after another, and count as no other query."""
    client_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Largest part of each limit (connections, request bodies, and what is worked on at once) that one client may hold; it
    shrinks while others hold some. 1: no limit for a client."""

    @property
    def mode_bits(self) -> int:
        return int(self.mode, 8)

    @property
    def tcp_address(self) -> tuple[str, int] | None:
        """Host (an IPv6 one without brackets) and port."""
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
    """Longest passage, in words and punctuation marks."""
    min_tokens: Annotated[int, Field(ge=1, le=8192)] = 40
    """Shorter pieces join their neighbours."""

    @model_validator(mode="after")
    def _min_below_max(self) -> "Passages":
        if self.min_tokens > self.max_tokens:
            raise at("min_tokens", f"at most passages.max_tokens, which is {self.max_tokens}")
        return self


class Parsing(Section):
    workers: Annotated[int, Field(ge=1, le=256)] = 2
    """Processes that read documents."""
    time_limit_s: Seconds = 60.0
    """A document that takes longer fails, alone."""
    memory_bytes: Bytes = 1024 * MiB
    """A document that takes more memory than this fails, alone."""


class OpenIE(Section):
    backend: OpenIEBackendName = "rules"
    """One of `memory.openie.registry`."""
    concurrency: Count = 8
    """Most model calls at once; `rules` makes none. Fewer are made where the server does not take as many."""
    fallback: FallbackName = "none"
    """What gives a passage triples until the model has read it."""
    reextract: Literal["off", "idle"] = "off"
    """idle: while hippod has nothing else to do, the rules read again what an older version of them has read."""


def _check_address(base_url: str | None) -> None:
    if base_url is not None and not re.fullmatch(r"https?://[^\s/]\S*", base_url):
        raise at("base_url", 'an address such as "http://localhost:8000/v1"')


class ModelServer(Section):
    base_url: OptionalText = None
    """Address of an OpenAI-compatible server, up to and with `/v1`; without it there is no model."""
    model: OptionalText = None
    api_key_env: OptionalText = None
    """Name of the environment variable that holds the key."""
    api_key_file: Annotated[OptionalPath, AfterValidator(readable_secret)] = None
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0

    @model_validator(mode="after")
    def _one_server_one_key(self) -> Self:
        _check_address(self.base_url)
        if self.api_key_env is not None and not re.fullmatch(r"[A-Za-z_]\w*", self.api_key_env, re.ASCII):
            raise at("api_key_env", "the name of an environment variable that contains the key, not the key itself")
        if self.api_key_env is not None and self.api_key_file is not None:
            raise at("api_key_file", "api_key_env or api_key_file, not both")
        return self

    @property
    def configured(self) -> bool:
        """Whether there is a model to call."""
        return self.base_url is not None and self.model is not None


class Judge(ModelServer):
    """The model that judges answers. What it does not set is as in `[llm]`; the key is not, if the server is another."""


Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _price(value: Any) -> Any:
    if (value := or_none(value)) is None:
        return None
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError("the prices of a million prompt tokens and a million completion tokens, such as [0.15, 0.6]")
    return tuple(value)


class LLM(ModelServer):
    timeout_s: Seconds = 60.0
    max_retries: Annotated[int, Field(ge=0, le=100)] = 5
    prompts: Annotated[OptionalPath, AfterValidator(usable_prompts)] = None
    """A folder of prompts that replace hippod's own, each a file NAME.txt."""
    price_per_million: Annotated[tuple[Price, Price] | None, BeforeValidator(_price)] = None
    """Money for a million prompt tokens and a million completion tokens, in any currency."""
    budget_tokens_per_day: Annotated[Annotated[int, Field(ge=1)] | None, BeforeValidator(or_none)] = None
    """Prompt and completion tokens of a UTC day after which extraction pauses until the next day."""
    budget_money_per_day: Annotated[Annotated[float, Field(gt=0)] | None, BeforeValidator(or_none)] = None
    """The same in money."""
    judge: Judge = Field(default_factory=Judge)


class Encoder(Section):
    backend: EncoderBackendName = "sentence-transformers"
    """One of `memory.encoder.registry`."""
    model: Annotated[str, Field(min_length=1)] = "all-MiniLM-L6-v2"
    """Name of the model; the default one comes inside a package and needs no network."""
    base_url: OptionalText = None
    """For `openai`: the server's address, up to and with `/v1`, where it is another than `[llm] base_url`."""
    query_prefix: OptionalText = None
    """For `openai`: what is put before a query, where the model wants a prefix that hippod does not know."""
    passage_prefix: OptionalText = None
    """For `openai`: what is put before a text to be indexed."""
    triple_query_prefix: OptionalText = None
    """What is put before a query that is compared with triples, where the model takes another instruction for facts."""
    phrase_query_prefix: OptionalText = None
    """For `openai`: what is put before a query that is compared with phrases (mode `query-to-node`)."""
    name_query_prefix: OptionalText = None
    """For `openai`: what is put before a name in a query that is compared with phrases (modes `ner-to-node` and `hipporag`)."""
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 64
    device: Annotated[str, Field(pattern=r"^(auto|cpu|mps|cuda(:[0-9]+)?)$")] = "auto"

    @model_validator(mode="after")
    def _address_and_model_that_the_backend_can_have(self) -> "Encoder":
        _check_address(self.base_url)
        try:
            ENCODER_BACKENDS[self.backend].check_model(self.model)
        except ValueError as error:
            raise at("model", str(error)) from None
        return self


class Graph(Section):
    synonym_threshold: Literal["auto"] | Annotated[float, Field(gt=0, le=1)] = "auto"
    """Cosine similarity from which two phrases are synonyms; auto: the encoder's (`memory.encoder.calibration`)."""
    synonym_max: Count = 100
    """Accepted from older configurations; it has no effect."""
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
    # Modes and settings are declared in memory.retrieval; the keys here are the daemon's own.
    filter: Literal["auto", "llm", "none"] = "auto"
    """Recognition memory: who decides which linked triples matter. auto: the LLM when one is configured."""
    filter_timeout_s: Seconds = 5.0
    """How long a query waits for that; then it goes on with all linked triples. Also for a model to name its entities."""
    keep_sessions: Duration = 30 * 86400.0
    """How long after its last question a session of `hippoctl ask --session` is kept."""


if TYPE_CHECKING:

    class _DeclaredDeepKeys(Section):
        n_v: int = 20
        n_e: int = 5
        n_d: int = 10
        answer_passages: int = 50
        model_temperature: float | None = None

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
    """Of `hippoctl ask --deep`; declared in memory.answering.working_memory.declared_settings."""


class MCP(Section):
    write: bool = False
    """Whether agents are given the tools that add and forget, over HTTP and by `hippoctl mcp`."""


class Worker(Section):
    brokers: Names = ("localhost:9092",)
    topics: OptionalNames = ()
    """Topics of articles; hippod-worker needs at least one."""
    group: Annotated[str, Field(min_length=1)] = "hippod-worker"
    """All workers of one group share the reading."""
    output: OptionalText = None
    """Topic that takes the records; hippod-worker needs it."""
    format: Literal["json", "text"] = "json"
    start: Literal["earliest", "latest"] = "earliest"
    """Where to begin in a topic that the group has no offset for."""
    dead_letter: OptionalText = None
    """Topic that takes the messages which cannot be read; without one they become records of failed documents."""
    encode: bool = True
    """Whether records get vectors here; without, whoever takes them encodes."""
    message_bytes: Annotated[Bytes, Field(ge=16 * 1024)] = 900_000
    """Largest message that is sent; a larger record is sent in parts. The topic must take as much."""
    concurrency: Count = 16
    """Messages that are read at once."""
    buffer_messages: Count = 1000
    """Messages that may be fetched and not sent as records; beyond, the partitions rest."""
    buffer_bytes: Bytes = 64 * MiB
    """The same in bytes."""
    listen: Annotated[OptionalText, AfterValidator(_tcp_or_socket)] = None
    """Where /healthz and /metrics are served: host:port, or the path of a Unix socket."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Passed on to kafka-python."""

    @property
    def settings(self) -> KafkaSettings:
        """The section in the consumer's terms."""
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
    """Rewrite tables that have become many files, delete what no kept commit needs, give freed memory back."""
    snapshot: Interval = 900.0
    """Fold the graph's changes in and write it down, for a fast start."""
    rescan: Interval = 600.0
    """Compare each folder with what is known of it, for changes that no event reported."""
    retry: Interval = 60.0
    """Take up failed documents whose next try is due."""
    backup: Interval = 0.0
    """Send what is new to `backup_to`."""
    backup_to: Annotated[OptionalText, AfterValidator(_backup_url)] = None
    """Where backups go: "s3://bucket/prefix", or "file:///folder" on another disk."""
    backup_keep: Duration = 30 * 86400.0
    """How long backups are kept there; the newest stays, however old it is."""

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
    """How long stopping may take before work in flight is handed back."""
    log_level: LogLevel = "info"
    inbox_documents: Count = 100_000
    """Documents that were added (`add`) and may wait to be indexed; those beyond are refused with 503, and a request that
    has more than these by itself with 413."""
    inbox_bytes: Bytes = 256 * MiB
    """The same in bytes, which are kept on disk and in memory until they are indexed."""
    queue_passages: Annotated[int, Field(ge=1, le=1_000_000)] = 768
    """Passages that may be read and not committed; beyond, reading waits. As many again of what goes first."""
    queue_bytes: Bytes = 64 * MiB
    """The same in bytes of their text."""
