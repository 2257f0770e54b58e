"""Compares the configuration with the settings that made a store: its encoder, and how its files were split.

A store is opened with the encoder that made its vectors. If the configuration names another encoder, it replaces the vectors on
request (`hippoctl reencode`). A configuration without `[encoder] backend` and `model` keeps the store's encoder.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from consumers.splitting import SplitSettings
from daemon.config.config import Config
from daemon.config.model_sections import Encoder
from memory.encoder.registry import ENCODER_BACKENDS, backend_and_model, encoder_name, identity_before_loading
from store.log.store_summary import StoreSummary
from store.types import EncoderIdentity

PREFIX_KEY = "settings/passage_prefix"
"""Key of the position that records the prefix of texts that are sent to the encoder's server."""
PASSAGES_KEY = "settings/passages"
"""Key of the position that records the sizes with which files are split into passages. A store without this position was split
with the defaults."""


@dataclass(frozen=True, slots=True)
class EncoderChoice:
    """`opened`: the configuration, with the encoder that made the store's vectors. `replacement`: the configuration, with the
    encoder that should replace that encoder; None if the configured encoder made the vectors. `content`, `configured`: names of
    the two encoders.
    """

    opened: Config
    replacement: Config | None = None
    content: str = ""
    configured: str = ""


def choose_encoder(config: Config, store: StoreSummary | None) -> EncoderChoice:
    """`store`: summary of the store's log; None for a new store."""
    if store is None:
        return EncoderChoice(config)
    section, made_by, stored_prefix = config.encoder, store.encoder, store.positions.get(PREFIX_KEY)
    if not section.model_fields_set & {"backend", "model"}:
        backend, model = backend_and_model(made_by)
        section = section.model_copy(update={"backend": backend, "model": model})
        config = config.model_copy(update={"encoder": section})
    name = encoder_name(section.backend, section.model)
    known = identity_before_loading(section.backend, section.model)
    prefix = ENCODER_BACKENDS[section.backend].passage_prefix(section.model, section.passage_prefix)
    same_encoder = name == made_by.name and (known is None or known == made_by)
    if not same_encoder:
        opened, content, configured = _section_of(made_by, stored_prefix, section), made_by.name, name
        if content == configured:
            content, configured = f"{content} ({made_by.dim})", f"{name} ({known.dim if known else '?'})"
    elif prefix is not None and stored_prefix is not None and prefix != stored_prefix:
        opened = section.model_copy(update={"passage_prefix": stored_prefix})
        content, configured = f'{name} with passage_prefix "{stored_prefix}"', f'{name} with passage_prefix "{prefix}"'
    else:
        return EncoderChoice(config)
    return EncoderChoice(config.model_copy(update={"encoder": opened}), config, content, configured)


def _section_of(made_by: EncoderIdentity, prefix: str | None, configured: Encoder) -> Encoder:
    """Returns the section of the encoder that made the vectors, with the configured server. The server's address must not come
    from the store: a backup of another person could name a server that would receive the texts and the key."""
    backend, model = backend_and_model(made_by)
    server_keys = ("base_url", "batch_size", "device")
    section = Encoder(backend=backend, model=model, **{name: getattr(configured, name) for name in server_keys})
    return section.model_copy(update={"passage_prefix": prefix}) if ENCODER_BACKENDS[backend].needs_server else section


def cannot_open(config: Config) -> str | None:
    """Returns what to install or set before the configured encoder can be loaded; None if nothing is known to be missing."""
    section = config.encoder
    backend = ENCODER_BACKENDS[section.backend]
    if backend.needs_server and section.base_url is None and config.llm.base_url is None:
        return f"set [encoder] base_url to the server of {section.model}"
    return backend.missing_package(section.model, section.device)


def split_of_store(positions: Mapping[str, Any]) -> SplitSettings:
    """Returns the settings with which the store's files were split."""
    return SplitSettings(**positions.get(PASSAGES_KEY, {}))


def passages_position(split: SplitSettings) -> dict[str, Any]:
    """Returns the position that records `split` as the settings with which files were split."""
    return {PASSAGES_KEY: asdict(split)}
