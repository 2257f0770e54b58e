"""Synthetic documents with the phrase distribution of a real extraction.

Measured on 1,890 MuSiQue passages with GPT-3.5's triples: 9.0 triples and 10.5 phrases a passage, of which 8.6 occur in no
earlier passage; 0.44 synonym edges a phrase. Phrases are two to four words of a Zipf-distributed vocabulary; some are spelled
almost like an earlier phrase, and these pairs are the synonyms.
"""

from collections.abc import Iterator

import numpy as np

from store.types import Document, PassageRef, PassageText, Triple, passage_id

VOCABULARY = 60_000
VERBS = ("is", "born", "located", "led", "wrote", "won")
PREDICATES = [f"{verb} {preposition}" for verb in VERBS for preposition in ("in", "by", "of", "at")]
TRIPLES = 9
ABOUT_TITLE = 0.88
"""Share of a passage's triples whose subject is its title."""
REUSED = 0.1
"""Share of a passage's phrases that occurred before."""
RESPELLED = 0.5
"""Share of new phrases that are a respelling of an earlier one."""


class World:
    """An endless, reproducible stream of passages with triples."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        weights = 1.0 / (np.arange(VOCABULARY) + 30.0)
        self._words = np.cumsum(weights / weights.sum())
        self.phrases: dict[str, None] = {}
        self._known: list[str] = []

    def _word(self, count: int) -> list[str]:
        return [
            f"w{index * 7919 % 1_000_003:05x}" for index in np.searchsorted(self._words, self._random.random(count))
        ]

    def _earlier(self) -> str:
        # Early phrases are the frequent ones, like names of countries and years.
        return self._known[int(len(self._known) * self._random.random() ** 2)]

    def _phrase(self) -> str:
        if self._known and self._random.random() < REUSED:
            return self._earlier()
        if self._known and self._random.random() < RESPELLED:
            words = self._earlier().split()
            words[int(self._random.integers(len(words)))] += "s"
            phrase = " ".join(words)
        else:
            phrase = " ".join(self._word(int(self._random.integers(2, 5))))
        if phrase not in self.phrases:
            self.phrases[phrase] = None
            self._known.append(phrase)
        return phrase

    def passages(self, count: int) -> Iterator[tuple[str, str, tuple[Triple, ...]]]:
        """Yields (title, text, triples) `count` times."""
        for _ in range(count):
            title = self._phrase()
            triples = []
            for _ in range(TRIPLES):
                subject = title if self._random.random() < ABOUT_TITLE else self._phrase()
                triples.append((subject, str(self._random.choice(PREDICATES)), self._phrase()))
            filler = " ".join(self._word(50))
            text = ". ".join(" ".join(triple) for triple in triples) + ". " + filler
            yield title, text, tuple(dict.fromkeys(triples))


def document(number: int, title: str, text: str, triples: tuple[Triple, ...]) -> tuple[Document, PassageText]:
    """Returns a document of one passage that supplies its triples."""
    id = passage_id(title, text)
    ref = PassageRef(id, {}, triples)
    return Document(f"added:{number}", "bench", title=title, passages=(ref,)), PassageText(id, title, text)
