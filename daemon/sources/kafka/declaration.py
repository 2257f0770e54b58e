"""Followed Kafka topics: `[[kafka]]`. Imports kafka-python only if topics are followed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field

from consumers.kafka.settings import KafkaSettings
from daemon.config_types.values import Count, Labels, MiB, Names, OptionalText, Section
from daemon.config_types.values import Size as Bytes
from daemon.contract.status import SourceStatus
from daemon.pipeline.ownership import ADDED, Claim, OwnerKind
from daemon.sources.base import Source, SourceKind, SourceParts

if TYPE_CHECKING:
    from daemon.contract.finding import Finding

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_URI_BEGINNING = re.compile(r"[a-z][a-z0-9+.-]*:.*")
_ARTICLES = re.compile(r"(kafka://[^/#]+)/")
ANY_TOPIC = ("kafka://",)
"""URI prefix of the documents of any topic. Claims of followed topics take precedence over this prefix."""


class KafkaSection(Section):
    brokers: Names = ("localhost:9092",)
    topics: Names
    group: Annotated[str, Field(min_length=1)] = "hippod"
    format: Literal["json", "text", "records"] = "json"
    """Messages are articles (JSON or text), or records, which another machine has made."""
    uris: Names = ANY_TOPIC
    """With `records`: URI prefixes of the documents that the topics may supply, except documents of a folder or topic."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where to begin in a topic that has no position in the store."""
    labels: Labels = ()
    """Labels of all documents of the topics, used by scopes."""
    labels_from_documents: bool = True
    """Whether labels in a document's metadata also count."""
    dead_letter: OptionalText = None
    """Topic to which unreadable messages are sent."""
    buffer_messages: Count = 4000
    """Maximum messages that are fetched but not committed; at this number, fetching pauses."""
    buffer_bytes: Bytes = 64 * MiB
    """Maximum bytes of messages that are fetched but not committed."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options for kafka-python."""

    @property
    def source_name(self) -> str:
        """The topics' name in `status`, and the `source` of their documents."""
        return self.settings.name

    @property
    def settings(self) -> KafkaSettings:
        """The section as the consumer's settings."""
        return KafkaSettings(
            self.brokers, self.topics, self.group, self.format, self.start, self.dead_letter, self.options
        )


class PartitionStatus(BaseModel):
    """`position`: offset of the next message that the store does not contain yet, null if it has no position."""

    topic: str
    partition: int
    position: int | None
    end: int
    lag: int


class KafkaStatus(SourceStatus):
    """`paused`: fetching pauses because too many messages are uncommitted. `rebalances`: number of rebalances of the group."""

    detail: str | None
    group: str
    brokers: list[str]
    rebalances: int
    paused: bool
    partitions: list[PartitionStatus]


def _make(section: KafkaSection, parts: SourceParts) -> Source:
    if section.format == "records":
        from daemon.sources.kafka.records_source import RecordsSource

        return RecordsSource(section, parts.store, parts.pipeline, parts.pool)
    from daemon.sources.kafka.source import KafkaSource

    return KafkaSource(section, parts.store, parts.pipeline, parts.pool, parts.split)


def _conflicts(sections: Sequence[KafkaSection], _own_paths: Mapping[str, Path]) -> list[str]:
    return [*_shared_topics(sections), *_shared_uris(sections), *_refused_options(sections)]


def _shared_topics(sections: Sequence[KafkaSection]) -> list[str]:
    """Returns a sentence for each topic that cannot be followed: for example, a topic in two sections would have two owners."""
    problems = []
    owners: dict[str, int] = {}
    for number, section in enumerate(sections):
        for topic in section.topics:
            if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
                problems.append(
                    f'kafka[{number}].topics names "{topic}"; allowed are up to 249 letters, digits, ".", "_" and "-"'
                )
            elif topic in owners:
                problems.append(f'kafka[{number}].topics names "{topic}" as kafka[{owners[topic]}] does; leave one out')
            owners[topic] = number
        if section.source_name == ADDED:
            problems.append(f'kafka[{number}].topics = ["{ADDED}"] is reserved for added documents; name another topic')
    for number, section in enumerate(sections):
        if section.dead_letter in owners:
            problems.append(
                f'kafka[{number}].dead_letter = "{section.dead_letter}" is followed as a topic too; name another topic'
            )
    return problems


def _shared_uris(sections: Sequence[KafkaSection]) -> list[str]:
    """Returns a sentence for each wrong entry of `uris`: for example, an entry in two sections would have two owners."""
    problems = []
    owners: dict[str, int] = {}
    for number, section in enumerate(sections):
        if section.format != "records":
            if section.uris != ANY_TOPIC:
                problems.append(f'kafka[{number}].uris is for format = "records"; leave it out')
            continue
        for uri in section.uris:
            if not _URI_BEGINNING.fullmatch(uri) or uri.startswith(f"{ADDED}:"):
                problems.append(
                    f'kafka[{number}].uris names "{uri}"; allowed are beginnings of URIs with their scheme, such as '
                    f'"kafka://articles/", except those of "{ADDED}:"'
                )
            elif uri in owners:
                problems.append(
                    f'kafka[{number}].uris names "{uri}" as kafka[{owners[uri]}] does; each document has one owner, so '
                    'give the sections different prefixes, such as uris = ["kafka://articles/"]'
                )
            owners[uri] = number
    return problems


def _refused_options(sections: Sequence[KafkaSection]) -> list[str]:
    """Returns a sentence for each option that kafka-python would refuse; connects to no broker."""
    if not sections:
        return []
    from consumers.kafka.validate import option_problems
    from daemon.config_types.values import value_text

    found = []
    for number, section in enumerate(sections):
        for option, reason in option_problems(section.settings, sends=section.dead_letter is not None):
            value = f" = {value_text(option, section.options[option])}" if option in section.options else ""
            found.append(f"kafka[{number}].options.{option}{value}: {reason}")
    return found


def _inspect(sections: Sequence[KafkaSection]) -> "Iterator[Finding]":
    if not sections:
        return
    from consumers.kafka.connect import reachable
    from daemon.contract.finding import Finding

    for settings in (section.settings for section in sections):
        name = f"kafka {settings.name}"
        if reachable(settings):
            yield Finding(name, "ok", f"a broker of {', '.join(settings.brokers)} takes connections")
        else:
            hint = "start the broker, or correct brokers in its [[kafka]]; positions are kept meanwhile"
            yield Finding(name, "fail", f"none of {', '.join(settings.brokers)} can be reached", hint)


def _claims(section: KafkaSection) -> Iterator[Claim]:
    kind = OwnerKind.RECORDS if section.format == "records" else OwnerKind.TOPIC
    for topic in section.topics:
        # Prefixes of the URIs of documents, of unreadable messages, and of tasks that store a partition's position.
        for prefix in (f"kafka://{topic}/", f"kafka://{topic}#", f"kafka:{topic}/"):
            yield Claim(prefix, section.source_name, kind)
    if section.format == "records":
        for prefix in section.uris:
            yield Claim(prefix, section.source_name, kind, yields=True)
            if articles := _ARTICLES.fullmatch(prefix):  # the prefix also matches the topic's unreadable messages
                yield Claim(f"{articles[1]}#", section.source_name, kind, yields=True)


KAFKA = SourceKind("kafka", KafkaSection, KafkaStatus, _make, _conflicts, _claims, _inspect)
