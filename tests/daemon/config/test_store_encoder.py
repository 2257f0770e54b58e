"""Which encoder a store is opened with, and which one is to replace it."""

from typing import Any

import pytest

from daemon.config import Config
from daemon.config.config import Config as ConfigType
from daemon.config.store_settings import cannot_open, choose_encoder
from memory.encoder.registry import backend_and_model
from store.log.store_summary import EARLIER_CALIBRATION, StoreSummary
from store.types import EncoderIdentity, SynonymRule

MINILM = EncoderIdentity("sentence-transformers/all-MiniLM-L6-v2+windows", 384)
EARLIER_MINILM = EncoderIdentity("sentence-transformers/all-MiniLM-L6-v2", 384)
E5 = EncoderIdentity("multilingual-e5-small-4bit", 384)
HASH = EncoderIdentity("hash/words+chars-1", 64)
BGE = EncoderIdentity("openai/bge-base", 768)
SERVER = {"backend": "openai", "model": "bge-base", "base_url": "http://localhost:1/v1"}


def config(encoder: dict[str, Any]) -> ConfigType:
    return Config.model_validate({"folder": [], "encoder": encoder})


def store(made_by: EncoderIdentity, prefix: str | None = None) -> StoreSummary:
    positions = {} if prefix is None else {"settings/passage_prefix": prefix}
    return StoreSummary(made_by, 4, 1, 0.0, SynonymRule(), EARLIER_CALIBRATION, positions)


@pytest.mark.parametrize("made_by", [MINILM, E5, HASH, BGE, EncoderIdentity("someone/else", 100)])
def test_configuration_without_encoder_model_opens_with_the_stores_encoder(made_by: EncoderIdentity) -> None:
    chosen = choose_encoder(config({"batch_size": 7, "base_url": "http://localhost:1/v1"}), store(made_by))
    assert chosen.replacement is None
    section = chosen.opened.encoder
    assert (section.backend, section.model, section.batch_size) == (*backend_and_model(made_by), 7)


@pytest.mark.parametrize(
    ("encoder", "made_by"),
    [
        ({"model": "all-MiniLM-L6-v2"}, MINILM),
        ({"model": "multilingual-e5-small-4bit"}, E5),
        ({"backend": "hash", "model": "64"}, HASH),
        (SERVER, BGE),
        ({"model": "someone/else"}, EncoderIdentity("someone/else", 100)),
    ],
)
def test_configured_encoder_replaces_the_encoder_of_a_store_made_by_another(
    encoder: dict[str, Any], made_by: EncoderIdentity
) -> None:
    wanted = config(encoder)
    assert choose_encoder(wanted, None).replacement is None
    assert choose_encoder(wanted, store(made_by)).replacement is None
    for other in {MINILM, E5, HASH, BGE} - {made_by}:
        chosen = choose_encoder(wanted, store(other))
        assert chosen.replacement == wanted and chosen.content != chosen.configured
        section = chosen.opened.encoder
        assert (section.backend, section.model) == backend_and_model(other)
        assert section.base_url == wanted.encoder.base_url


def test_different_dimension_or_prefix_replaces_the_stores_encoder() -> None:
    chosen = choose_encoder(config({"backend": "hash", "model": "65"}), store(HASH))
    assert chosen.replacement is not None and "64" in chosen.content and "65" in chosen.configured
    wanted = config(SERVER | {"passage_prefix": "text: "})
    assert choose_encoder(wanted, store(BGE)).replacement is None  # a store of an earlier release has no prefix
    assert choose_encoder(wanted, store(BGE, "text: ")).replacement is None
    chosen = choose_encoder(wanted, store(BGE, ""))
    assert chosen.replacement == wanted and chosen.opened.encoder.passage_prefix == ""


def test_the_encoder_of_an_earlier_release_stays_in_use_until_it_is_replaced() -> None:
    for encoder in ({}, {"model": "all-MiniLM-L6-v2"}):
        chosen = choose_encoder(config(encoder), store(EARLIER_MINILM))
        assert chosen.replacement is not None and chosen.opened.encoder.model == "all-MiniLM-L6-v2"


def test_base_url_of_the_stores_encoder_comes_only_from_the_configuration() -> None:
    chosen = choose_encoder(config({"backend": "hash"}), store(BGE))
    assert chosen.opened.encoder.base_url is None
    assert "base_url" in str(cannot_open(chosen.opened))
    assert cannot_open(config({"backend": "hash"})) is None
