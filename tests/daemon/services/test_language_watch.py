"""The log says once that the documents need another encoder or taggers, and what to install."""

from collections.abc import Collection
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from daemon.contract.advice import encoder_advice, extractor_advice
from daemon.contract.status import IndistinctPhrases
from daemon.services.passage_languages import MIN_PASSAGES, LanguageWatch
from memory.encoder.packaged_model import E5, MINILM
from tests.store.small_store import complete, open_store
from tests.store.text.test_language import TEXTS


@pytest.mark.parametrize(("encoder", "warns"), [(MINILM.identity.name, True), (E5.identity.name, False)])
def test_german_documents_are_logged_once_if_the_encoder_is_english(tmp_path: Path, encoder: str, warns: bool) -> None:
    watch = LanguageWatch(encoder)
    german = {f"de{n}": [("", f"{TEXTS['de']} {n}", ())] for n in range(MIN_PASSAGES)}
    with open_store(tmp_path) as memory, capture_logs() as logged:
        watch.check(memory.snapshot())
        memory.commit(complete(memory, german, []))
        watch.check(memory.snapshot())
        watch.check(memory.snapshot())
    events = [event for event in logged if event["event"] == "encoder_knows_little"]
    assert len(events) == warns
    if warns:
        assert events[0]["languages"] == {"de": 1.0}
        assert "make install EXTRAS=multilingual" in events[0]["hint"]


@pytest.mark.parametrize(("untagged", "warns"), [({"de", "ja"}, True), ((), False)])
def test_german_documents_are_logged_once_if_their_tagger_is_missing(
    tmp_path: Path, untagged: Collection[str], warns: bool
) -> None:
    watch = LanguageWatch(E5.identity.name, untagged)
    german = {f"de{n}": [("", f"{TEXTS['de']} {n}", ())] for n in range(MIN_PASSAGES)}
    with open_store(tmp_path) as memory, capture_logs() as logged:
        memory.commit(complete(memory, german, []))
        watch.check(memory.snapshot())
        watch.check(memory.snapshot())
    assert [event["event"] for event in logged] == ["taggers_missing"] * warns
    assert all("make install EXTRAS=multilingual" in event["hint"] for event in logged)


def test_extractor_advice_depends_on_the_share_of_languages_without_taggers() -> None:
    assert extractor_advice({"de"}, {"en": 0.96, "de": 0.04}) is None
    assert extractor_advice({"de", "ja"}, {"en": 0.94, "de": 0.03, "ja": 0.03}) is not None
    assert extractor_advice({"ja"}, {"de": 1.0}) is None
    assert extractor_advice({"de"}, {}) is None


def test_encoder_advice_does_not_recommend_the_encoder_in_use() -> None:
    crowded = IndistinctPhrases(unknown=0, crowded=5_000)
    for encoder, named in ((MINILM.identity.name, True), (E5.identity.name, False)):
        advice = encoder_advice(encoder, 10_000, crowded, {})
        assert advice is not None and "[encoder] model" in advice
        assert ("multilingual-e5-small-4bit" in advice) == named
    assert encoder_advice(MINILM.identity.name, 10_000, None, {"en": 0.9, "de": 0.1}) is None
