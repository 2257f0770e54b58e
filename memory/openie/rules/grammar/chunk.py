"""What a sentence is made of: noun phrases, verb groups, and what stands between them."""

from dataclasses import dataclass

from memory.openie.rules.grammar.tokenizer import join_tokens

NOUN, VERB, PREP, COMMA, AND, WHICH, OPEN, CLOSE, BREAK, ADVERB = "N", "V", "P", ",", "C", "W", "(", ")", ";", "R"


@dataclass(slots=True)
class Chunk:
    """Tokens `start` to `end` of a sentence under one kind.

    Of a noun phrase: `words` without its article and owner, `det` the article or possessive word, `owner` the phrase
    before its "'s", `name` whether its head is a name, `date` whether it is a date or number.
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
