"""Loads the encoder that made the store's vectors, or a stand-in while another encoder replaces the vectors."""

from dataclasses import replace
from functools import partial

import structlog

from daemon.config import Config
from daemon.config.store_settings import PREFIX_KEY, EncoderChoice
from daemon.model_factory import calibration_for, load_encoder
from daemon.services.reencoding import ConfiguredEncoder
from memory.encoder.absent import AbsentEncoder
from memory.encoder.errors import EncoderUnavailable
from memory.encoder.registry import encoder_name
from memory.types import Encoder
from store.errors import EncoderMismatch
from store.log.store_summary import StoreSummary
from store.store import Store
from store.types import Batch, Calibration, SynonymRule

log = structlog.get_logger()


def load_opened_encoder(
    choice: EncoderChoice, store: StoreSummary | None, reencode: bool
) -> tuple[Encoder, EncoderChoice]:
    """Returns the encoder that opens the store, and the choice. The returned choice differs from `choice` if the loaded encoder
    does not make the store's kind of vectors.

    If the store's encoder cannot be loaded, `reencode` allows a stand-in until the vectors are replaced. Without `reencode`,
    raises EncoderMismatch, or EncoderUnavailable if the configuration names no other encoder.
    """
    made_by = None if store is None else store.encoder
    try:
        encoder = load_encoder(choice.opened, made_by)
    except EncoderUnavailable as error:
        if choice.replacement is None or made_by is None:
            raise
        reason = str(error).rstrip(".")
    else:
        if made_by is None or encoder.identity == made_by:
            return encoder, choice
        reason = f"it has {encoder.identity.dim} dimensions now"
        if choice.replacement is None:
            names = [f"{each.name} ({each.dim})" for each in (made_by, encoder.identity)]
            choice = replace(choice, replacement=choice.opened, content=names[0], configured=names[1])
    if not reencode:
        raise EncoderMismatch(
            f"the encoder {choice.content} made the vectors of the store {choice.opened.store.path}, the configuration names "
            f"{choice.configured}, and {made_by.name} cannot be loaded: {reason}. Make it available again, set [encoder] back, "
            "or start with `hippod --reencode`: until the content is encoded again, queries are answered by words only, and "
            "new documents wait"
        )
    log.warning("encoder_absent", encoder=made_by.name, error=reason)
    return AbsentEncoder(made_by, reason), choice


def configured_encoder(choice: EncoderChoice) -> ConfiguredEncoder | None:
    """Returns the encoder that should replace the opened encoder; None if the configured encoder made the content."""
    if choice.replacement is None:
        return None
    section = choice.replacement.encoder
    return ConfiguredEncoder(
        encoder_name(section.backend, section.model),
        choice.configured,
        choice.content,
        partial(_load_configured, choice.replacement),
        PREFIX_KEY,
        section.batch_size,
    )


def _load_configured(config: Config) -> tuple[Encoder, Calibration, SynonymRule]:
    encoder = load_encoder(config)
    calibration = calibration_for(encoder, None)
    return encoder, calibration, config.synonym_rule(calibration)


def keep_passage_prefix(store: Store, encoder: Encoder) -> None:
    """If the store does not record the prefix of encoded texts yet, records it (`daemon.config.store_settings`)."""
    if (prefix := encoder.passage_prefix) is not None and store.positions.get(PREFIX_KEY) is None:
        store.commit(Batch(positions={PREFIX_KEY: prefix}))
