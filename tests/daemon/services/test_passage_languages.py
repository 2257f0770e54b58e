"""`status` lists the languages of the memory."""

from daemon.services.passage_languages import PassageLanguages
from tests.store.small_store import complete, open_store
from tests.store.text.test_language import TEXTS


def test_language_shares_count_only_present_passages(tmp_path):
    watch = PassageLanguages()
    german = {f"de{i}": [("", f"{TEXTS['de']} {i}", ())] for i in range(6)}
    others = {f"en{i}": [("", f"{TEXTS['en']} {i}", ())] for i in range(2)} | {"x": [("", "42 17", ())]}
    with open_store(tmp_path) as memory:
        assert watch.shares(memory.snapshot()) == {}
        memory.commit(complete(memory, german | others, []))
        assert watch.shares(memory.snapshot()) == {"de": 0.67, "en": 0.22}
        memory.commit(complete(memory, {}, [*german]))
        assert watch.shares(memory.snapshot()) == {"en": 0.67}
