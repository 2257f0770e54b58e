"""A scope's words are found like the whole memory's, in any language."""

import numpy as np

from store.index.words.postings import Postings, SelectedPostings

GERMAN = "Die Häuser der Stadt wurden im letzten Jahrhundert von den Bürgern gebaut und gehören heute der Gemeinde."
ENGLISH = "The houses of the town were built by its citizens in the last century and belong to the community today."


def test_a_scope_finds_words_by_the_stems_of_their_language() -> None:
    whole, alone = Postings(), Postings()
    for row, text in enumerate((ENGLISH, GERMAN)):
        whole.extend(row, text)
    length = alone.extend(0, GERMAN)
    scope, living = SelectedPostings(whole, np.array([1]), 2), np.array([True])
    expected = alone.scores("Bürger der Häuser", living, length)
    assert expected[0] > 0
    assert scope.scores("Bürger der Häuser", living, length) == expected
