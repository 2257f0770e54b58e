"""The configuration in force, and its reload (SIGHUP)."""

import asyncio
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields
from pathlib import Path
from typing import Any

import structlog

from daemon.api.server import ApiServer
from daemon.config import Config, ConfigError, load_config, unsupported
from daemon.config_types.path_validators import read_token
from daemon.contract.base import field_path
from daemon.observe.logs import mask, set_level
from daemon.runtime.derived_settings import client_rules
from daemon.runtime.scheduler import Scheduler
from daemon.runtime.service_manager import Notifier
from daemon.sources.base import LabelsBySource
from memory.answering.working_memory.declared_settings import DEEP_SETTINGS
from memory.retrieval.settings import RetrievalSettings

log = structlog.get_logger()

LIVE_SECTIONS = ("client", "retrieval", "deep", "schedule")
TOKEN_FILE_KEY = "api.token_file"  # noqa: S105 - the name of a setting
"""A reload applies this setting unless TCP is added or removed."""
LIVE_KEYS = (
    "store.memory_limit",
    "daemon.log_level",
    "daemon.stop_timeout_s",
    "llm.price_per_million",
    "llm.budget_tokens_per_day",
    "llm.budget_money_per_day",
    TOKEN_FILE_KEY,
)

LIVE_SOURCE_KEYS = (".labels", ".labels_from_documents")
"""Keys of a source that a reload applies. Other keys of a source, and adding or removing a source, need a restart."""


class ActiveConfig:
    """The configuration in force; a reload replaces it."""

    def __init__(self, config: Config, file: Path | None) -> None:
        self.config = config
        self._file = file
        self._labels = config.source_labels()

    @property
    def stop_timeout_s(self) -> float:
        return self.config.daemon.stop_timeout_s

    def retrieval(self) -> RetrievalSettings:
        settings = self.config.retrieval
        return RetrievalSettings(**{field.name: getattr(settings, field.name) for field in fields(RetrievalSettings)})

    def deep(self) -> Mapping[str, float | None]:
        """Returns the values of `[deep]`."""
        return {name: getattr(self.config.deep, name) for name in DEEP_SETTINGS}

    def memory_limit(self) -> int | str:
        """Returns `[store] memory_limit`."""
        return self.config.store.memory_limit

    def mode(self) -> str:
        return self.config.retrieval.mode

    def labels(self) -> LabelsBySource:
        """Returns the labels of sources. A reload applies new labels at once."""
        return self._labels

    def filtering(self) -> tuple[str, float]:
        """Returns (name of the filter, its time limit in seconds)."""
        return self.config.retrieval.filter, self.config.retrieval.filter_timeout_s

    async def reload(self, scheduler: Scheduler, api: ApiServer) -> None:
        """Applies settings that can change while hippod runs; logs changes that need a restart. A bad file changes nothing."""
        try:
            # Read in a thread: a file or folder on a hanging drive must not block the event loop.
            new, token = await asyncio.to_thread(self._read)
        except ConfigError as error:
            log.error("reload_refused", error=str(error))
            return
        live, restart = diff_reload(self.config, new)
        set_level(new.daemon.log_level)
        scheduler.reload(new.schedule)
        keys = set(LIVE_KEYS)
        api.use_clients(client_rules(new))
        if (new.api.tcp is None) == (self.config.api.tcp is None):
            if token is not None:
                mask(token)
            api.use_token_file(new.api.token_file)
        else:
            # Adding or removing TCP needs a restart. Until then, the old token file stays in force, if there was one.
            keys.discard(TOKEN_FILE_KEY)
            restart = sorted([*restart, *(key for key in live if key == TOKEN_FILE_KEY)])
            live = [key for key in live if key != TOKEN_FILE_KEY]
        self.config = self._with_live(new, keys)
        self._labels = new.source_labels()
        log.info("reloaded", changed=live, needs_restart=restart)

    def _with_live(self, new: Config, keys: AbstractSet[str]) -> Config:
        """Returns the configuration in force with the changeable settings of `new`.

        Other settings keep the values from hippod's start, so that the next reload reports again which changes need a restart.
        """
        live: dict[str, Any] = {section: getattr(new, section) for section in LIVE_SECTIONS}
        for path in keys:
            section, _, key = path.partition(".")
            table = live.get(section, getattr(self.config, section))
            live[section] = table.model_copy(update={key: getattr(getattr(new, section), key)})
        return self.config.model_copy(update=live)

    def _read(self) -> tuple[Config, str | None]:
        """Loads the configuration file, and the token if `token_file` is set."""
        new = load_config(self._file)
        if problems := unsupported(new):
            raise ConfigError(problems)
        if new.api.token_file is None:
            return new, None
        try:
            return new, read_token(new.api.token_file)
        except ValueError as error:  # the token file has changed since `load_config` checked it
            raise ConfigError([f"api.token_file: allowed is {error}"]) from None


async def serve_reloads(
    requested: asyncio.Event,
    active: ActiveConfig,
    scheduler: Scheduler,
    api: ApiServer,
    notifier: Notifier,
    status_line: Callable[[], str],
) -> None:
    """Reloads the configuration whenever `requested` is set, until cancelled. Simultaneous requests cause one reload."""
    while True:
        await requested.wait()
        requested.clear()
        notifier.reloading()
        try:
            await active.reload(scheduler, api)
        except Exception as error:  # whatever the error, keep the old configuration and serve the next reload
            log.error("reload_refused", error=error, exc_info=True)
        finally:
            notifier.ready(status_line())


def diff_reload(old: Config, new: Config) -> tuple[list[str], list[str]]:
    """Returns the dotted keys that differ, as two sorted lists: keys that take effect at once, and keys that need a restart."""
    before, after = _flat(old), _flat(new)
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    labels = {key for key in before.keys() & after.keys() if key.endswith(LIVE_SOURCE_KEYS)}
    sections = {key: key.partition(".")[0].partition("[")[0] for key in changed}  # `client` of `client[0].labels`
    live = [key for key in changed if key in labels or key in LIVE_KEYS or sections[key] in LIVE_SECTIONS]
    return live, [key for key in changed if key not in live]


def _flat(config: Config) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name in Config.model_fields:
        value = getattr(config, name)
        for number, table in enumerate(value if isinstance(value, tuple) else (value,)):
            path = (name, number) if isinstance(value, tuple) else (name,)
            flat |= {field_path((*path, key)): getattr(table, key) for key in type(table).model_fields}
    return flat
