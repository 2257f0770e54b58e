"""Settings of a `[[kafka]]` section, and the configuration of kafka-python's clients derived from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

MessageFormat = Literal["json", "text"]
"""Format of an article."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The followed topics of one cluster. `options` are passed to kafka-python."""

    brokers: tuple[str, ...]
    topics: tuple[str, ...]
    group: str = "hippod"
    format: Literal["json", "text", "records"] = "json"
    start: Literal["earliest", "latest"] = "earliest"
    dead_letter: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def message_format(self) -> MessageFormat:
        """Format of the articles. Raises ValueError if the topics contain records."""
        if self.format == "records":
            raise ValueError("records are not articles")
        return self.format

    @property
    def name(self) -> str:
        """The name of the source, in `status` and in its documents."""
        return ",".join(self.topics)


RESERVED_OPTIONS: Mapping[str, str] = {
    "bootstrap_servers": "it is set by brokers",
    "group_id": "it is set by group",
    "auto_offset_reset": "it is set by start",
    "enable_auto_commit": "positions are committed with the store",
    "auto_commit_interval_ms": "positions are committed with the store",
    "default_offset_commit_callback": "positions are committed with the store",
    "consumer_timeout_ms": "hippod never stops listening",
    "transactional_id": "nothing is sent in transactions",
    **dict.fromkeys(("key_deserializer", "value_deserializer", "key_serializer", "value_serializer"), "it is set by format"),
    **dict.fromkeys(
        (
            "kafka_client", "selector", "metric_reporters", "ssl_context", "sasl_oauth_token_provider", "partitioner",
            "partition_assignment_strategy",
        ),
        "it takes a Python object, which a file cannot contain",
    ),
}  # fmt: skip
"""Options that users must not set, with the reason: hippod itself sets the option, or a file cannot contain its value."""

_CONSUMER_DEFAULTS: Mapping[str, Any] = {
    "bootstrap_timeout_ms": 5000,
    "reconnect_backoff_max_ms": 2000,
    "metadata_max_age_ms": 10_000,
    "allow_auto_create_topics": False,
    "metrics_enabled": False,
}
"""Defaults that differ from kafka-python's. With them, the client notices a returning broker or a new topic within seconds, and
a misspelt name creates no topic."""

_GROUP_ONLY = frozenset(("group_instance_id", "session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms"))
_PRODUCER_DEFAULTS: Mapping[str, Any] = {
    "bootstrap_timeout_ms": 5000,
    "reconnect_backoff_max_ms": 2000,
    "max_request_size": 256 * 1024 * 1024,
    "delivery_timeout_ms": 60_000,
    "max_block_ms": 15_000,
    "acks": "all",
    "metrics_enabled": False,
}
"""`max_request_size` is high, so that only the broker limits a message's size."""


def with_tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options, with lists converted to tuples if kafka-python requires tuples."""
    out = dict(options)
    if isinstance(out.get("api_version"), list):
        out["api_version"] = tuple(out["api_version"])
    if isinstance(out.get("socket_options"), list):
        out["socket_options"] = [tuple(each) if isinstance(each, list) else each for each in out["socket_options"]]
    return out


def consumer_config(settings: KafkaSettings, client_options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keyword arguments of the group's consumer. `client_options` maps every option of a consumer to its
    default."""
    configured = {name: value for name, value in with_tuples(settings.options).items() if name in client_options}
    return {
        **_CONSUMER_DEFAULTS,
        **configured,
        "bootstrap_servers": list(settings.brokers),
        "group_id": settings.group,
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
    }


def reader_config(settings: KafkaSettings, client_options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keyword arguments of a consumer that reads a topic without joining a group."""
    config = consumer_config(settings, client_options)
    return {name: value for name, value in config.items() if name not in _GROUP_ONLY} | {
        "group_id": None,
        "auto_offset_reset": "earliest",
    }


def producer_config(settings: KafkaSettings, client_options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keyword arguments of a producer."""
    configured = {name: value for name, value in with_tuples(settings.options).items() if name in client_options}
    configured.pop("allow_auto_create_topics", None)
    return {**_PRODUCER_DEFAULTS, **configured, "bootstrap_servers": list(settings.brokers)}
