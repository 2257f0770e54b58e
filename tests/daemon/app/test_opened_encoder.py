"""A store whose encoder cannot be loaded is opened only in order to replace its vectors."""

import pytest

from daemon.app.opened_encoder import configured_encoder, load_opened_encoder
from daemon.config import Config
from daemon.config.store_settings import choose_encoder
from memory.encoder.errors import EncoderServerDown, EncoderUnavailable
from store.errors import EncoderMismatch
from store.log.store_summary import EARLIER_CALIBRATION, StoreSummary
from store.types import EncoderIdentity, SynonymRule

GONE = StoreSummary(EncoderIdentity("openai/gone", 768), 4, 1, 0.0, SynonymRule(), EARLIER_CALIBRATION, {})


def test_encoder_mismatch_names_both_encoders_and_reencode() -> None:
    choice = choose_encoder(Config.model_validate({"encoder": {"backend": "hash", "model": "64"}}), GONE)
    with pytest.raises(EncoderMismatch, match=r"openai/gone.*hash/words.*base_url.*hippod --reencode"):
        load_opened_encoder(choice, GONE, reencode=False)


def test_unavailable_store_encoder_is_replaced_by_a_stand_in_with_reencode() -> None:
    choice = choose_encoder(Config.model_validate({"encoder": {"backend": "hash", "model": "64"}}), GONE)
    encoder, choice = load_opened_encoder(choice, GONE, reencode=True)
    assert encoder.identity == GONE.encoder and encoder.remote
    for encode in (encoder.encode, encoder.encode_low_precision, lambda texts: encoder.encode_query(texts[0])):
        with pytest.raises(EncoderServerDown, match=r"openai/gone.*base_url"):
            encode(["text"])
    wanted = configured_encoder(choice)
    assert wanted is not None
    new, calibration, rule = wanted.load()
    assert (new.identity.name, new.identity.dim) == (wanted.encoder, 64)
    assert rule.threshold == calibration.synonym_threshold


def test_unavailable_encoder_fails_the_start_if_no_other_is_configured() -> None:
    choice = choose_encoder(Config.model_validate({}), GONE)
    assert choice.replacement is None
    with pytest.raises(EncoderUnavailable, match="base_url"):
        load_opened_encoder(choice, GONE, reencode=True)
