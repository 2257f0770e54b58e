"""Derives the settings of API and queues from the configuration and the process's limit on open files."""

import resource
from dataclasses import fields, replace

import structlog

from daemon.api.access.client import Client, ClientRule, Right
from daemon.api.settings import ApiLimits, ApiSettings
from daemon.config import Config
from daemon.config.client import ClientSection, group_id, user_id
from daemon.config.sections import Api
from daemon.pipeline.backpressure import QueueLimits

log = structlog.get_logger()
RESERVED_FILES = 384
"""Open files reserved for uses other than connections: tables, watches, pipes of children, brokers, model servers."""
CONNECTIONS_MIN = 8
REFUSED_CONNECTIONS = 64, 2048
"""Minimum and maximum number of connections beyond the limit that can receive a refusal at the same time. While hippod starts,
the kernel queues up to 2,048 connections, which hippod then accepts all at once."""
OPEN_FILES_RECOMMENDED = 4096


def raise_open_files() -> int:
    """Raises the soft limit on open files to the hard limit; returns it. This is safe, because Python does not use `select`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (ValueError, OSError) as error:  # some systems refuse the hard limit that they report
            log.warning("open_files_not_raised", limit=soft, error=str(error))
    return 1 << 30 if soft == resource.RLIM_INFINITY else soft


def connections(configured: int, sides: int, open_files: int) -> int:
    """Returns the maximum connections on each of `sides` (Unix, TCP) that leaves enough open files for other uses."""
    return min(configured, max((open_files - RESERVED_FILES) // sides, CONNECTIONS_MIN))


def refused_connections(served: int, sides: int, open_files: int) -> int:
    """Returns how many connections beyond `served` each of `sides` may refuse with a response at the same time."""
    low, high = REFUSED_CONNECTIONS
    return min(max((open_files - RESERVED_FILES) // sides - served, low), high)


def api_settings(config: Config) -> ApiSettings:
    """Returns the API's settings. Also raises the process's limit on open files, which limits the connections."""
    api = config.api
    open_files = raise_open_files()
    sides = 1 if api.tcp is None else 2
    limit = connections(api.connections, sides, open_files)
    if limit < api.connections or open_files < OPEN_FILES_RECOMMENDED:
        log.warning(
            "open_files_few",
            limit=open_files,
            connections=limit,
            hint="raise the hard limit: LimitNOFILE= in the unit, or `ulimit -Hn`",
        )
    configured = {each.name: getattr(api, each.name) for each in fields(ApiLimits) if each.name in Api.model_fields}
    limits = replace(
        ApiLimits(**configured),
        lines_bytes=max(api.request_bytes, api.lines_bytes),
        import_bytes=max(api.request_bytes, api.import_bytes),
        documents_per_request=config.daemon.inbox_documents,
        connections=limit,
        refused_connections=refused_connections(limit, sides, open_files),
    )
    rules = client_rules(config)
    return ApiSettings(api.socket, api.mode_bits, api.group, api.tcp_address, api.token_file, rules, limits)


def queue_limits(config: Config) -> QueueLimits:
    daemon = config.daemon
    return QueueLimits(daemon.inbox_documents, daemon.inbox_bytes, daemon.queue_passages, daemon.queue_bytes)


def client_rules(config: Config) -> tuple[ClientRule, ...]:
    """Returns the rules in the order of the validated configuration. A user that no longer exists matches no peer."""
    return tuple(_rule(each) for each in config.client)


def _rule(section: ClientSection) -> ClientRule:
    client = Client(
        section.client_name,
        None if section.sees_all else frozenset(section.labels),
        frozenset(Right(each) for each in section.rights),
    )
    return ClientRule(
        client,
        section.token_file,
        None if section.user is None else user_id(section.user),
        None if section.group is None else group_id(section.group),
    )
