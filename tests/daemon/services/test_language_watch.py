"""The log says once that the documents need another encoder, and what to install."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from daemon.contract.status import IndistinctPhrases, encoder_advice
from daemon.services.passage_languages import MIN_PASSAGES, LanguageWatch
from memory.encoder.packaged_model import E5, MINILM
from tests.store.small_store import complete, open_store
from tests.store.text.test_language import TEXTS


@pytest.mark.parametrize(("encoder", "warns"), [(MINILM.identity.name, True), (E5.identity.name, False)])
def test_german_documents_need_another_encoder_than_that_for_english(tmp_path: Path, encoder: str, warns: bool) -> None:
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


def test_the_advice_names_no_encoder_that_is_in_use() -> None:
    crowded = IndistinctPhrases(unknown=0, crowded=5_000)
    for encoder, named in ((MINILM.identity.name, True), (E5.identity.name, False)):
        advice = encoder_advice(encoder, 10_000, crowded, {})
        assert advice is not None and "[encoder] model" in advice
        assert ("multilingual-e5-small-4bit" in advice) == named
    assert encoder_advice(MINILM.identity.name, 10_000, None, {"en": 0.9, "de": 0.1}) is None
