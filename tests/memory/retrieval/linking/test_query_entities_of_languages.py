"""Names and known phrases in questions that are not in English."""

import pytest

from memory.retrieval.linking.query_entities import known_names, query_entities


class Memory:
    """Knows some phrases."""

    PHRASES = ("灯塔", "林小梅", "leuchtturm", "verzeichnis", "灯台", "phare", "wer")

    def phrase_row(self, phrase):
        return self.PHRASES.index(phrase) if phrase in self.PHRASES else None


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Wer baute den Leuchtturm auf Aldersund?", ["Leuchtturm", "Aldersund"]),
        ("Quel gardien a vécu dans le phare ?", ["phare"]),
        ("Nordlicht 的灯塔是谁设计的？", ["Nordlicht", "灯塔"]),
        ("林小梅设计了什么？", ["林小梅"]),
        ("灯台は誰が建てたのですか？", ["灯台"]),
        ("¿Quién construyó el faro de la isla de Odile Brandt?", ["Odile Brandt"]),
        ("Who built the leuchtturm of Aldersund?", ["Aldersund"]),
    ],
)
def test_names_are_found_without_the_words_that_begin_a_question(query, names):
    assert query_entities(query, Memory()) == names
    assert set(names) <= set(known_names(query, Memory()))
