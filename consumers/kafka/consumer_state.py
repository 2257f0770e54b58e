"""The state of a consumer, as `status` shows it, and the mapping from errors of the Kafka client to states."""

from collections.abc import Collection
from dataclasses import dataclass

from kafka import TopicPartition
from kafka.errors import (
    AuthorizationError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)

MAX_NAMED_PARTITIONS = 5
"""Maximum number of partitions that a state's detail names."""


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """`state`: "starting", "joining", "following", "unreachable", "missing" (a topic), "denied", "error" or "stopped"."""

    state: str = "starting"
    detail: str = ""


def partition_names(tps: Collection[TopicPartition]) -> str:
    named = [f"{tp.topic}/{tp.partition}" for tp in sorted(tps)]
    more = f" and {len(named) - MAX_NAMED_PARTITIONS} more" if len(named) > MAX_NAMED_PARTITIONS else ""
    return ", ".join(named[:MAX_NAMED_PARTITIONS]) + more


def state_after(error: Exception, refused: str) -> tuple[str, str]:
    """Returns the state after an error, and its detail. `refused` is the brokers' message about a recently refused
    login, or ""."""
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    reason = reason.replace(f"{type(error).__name__}: {type(error).__name__}", type(error).__name__)
    if isinstance(error, SaslAuthenticationFailedError | UnsupportedSaslMechanismError) or refused:
        return "denied", f"the brokers refuse the login: {refused or reason}"
    if isinstance(error, AuthorizationError):
        return "denied", f"the brokers refuse access: {reason}"
    if isinstance(error, KafkaConfigurationError):
        return "error", f"the brokers cannot be followed with these options: {reason}"
    if isinstance(error, KafkaTimeoutError | OSError):
        return "unreachable", reason
    return "error", reason
