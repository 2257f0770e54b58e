"""The parts of a sentence: noun phrases, verb groups, and the words between them."""

from dataclasses import dataclass

from memory.openie.rules.grammar.tokenizer import join_tokens

NOUN, VERB, PREP, COMMA, AND, WHICH, OPEN, CLOSE, BREAK, ADVERB = "N", "V", "P", ",", "C", "W", "(", ")", ";", "R"


@dataclass(slots=True)
class Chunk:
    """Tokens `start` to `end` of a sentence, which have one kind.

    In a noun phrase, `words` has no article and no owner; `det` is the article or possessive word, `owner` the phrase before
    its "'s". `name`: whether the head of the noun phrase is a name. `date`: whether the phrase is a date or a number.
    """

    kind: str
    words: list[str]
    start: int
    end: int
    tag: str = ""
    det: str = ""
    owner: "Chunk | None" = None
    name: bool = False
    date: bool = False
    pronoun: bool = False
    title: bool = False

    @property
    def text(self) -> str:
        return join_tokens(self.words)
