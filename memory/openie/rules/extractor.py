"""OpenIE without a model: triples of English sentences and of tables; in other languages, the title and the names in the
text."""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from unicodedata import normalize

from memory.llm.json_answers import replace_surrogates
from memory.openie.rules.coreference import Coreference, names_topic
from memory.openie.rules.grammar.clause_parser import parse_sentences
from memory.openie.rules.grammar.tokenizer import split_sentences
from memory.openie.rules.languages.optional_taggers import EXTRA, INSTALLED, TAGGED_LANGUAGES
from memory.openie.rules.languages.paragraph_language import is_english, paragraph_language
from memory.openie.rules.line_classifier import Block, line_blocks
from memory.openie.rules.names_and_keywords import read_names
from memory.openie.rules.table_records import key_first, read_record
from memory.openie.rules.technical_text import is_documentation, is_technical
from memory.openie.rules.titles import is_contents
from memory.openie.rules.triple_collector import TripleCollector
from memory.phrase_normalisation import normalise_phrase
from store.text.language import detect_language
from store.types import Extraction, PassageText

VERSION = 14
MAX_CHARS = 40_000
"""Maximum number of characters of a passage that are read, many times the usual length, so that no passage takes long."""
MAX_TRIPLES = 400


class RulesExtractor:
    """An extraction depends only on the passage's title and text, and on whether the extra `multilingual` is installed.
    Stateless, so threads may share it."""

    name = f"rules/{VERSION}"
    tagged_name = f"{name}{'+' if INSTALLED else '-'}{EXTRA}"
    """Name of extractions that depend on the extra, that is, of passages with German or Japanese text."""

    def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        """Content never causes an exception. Takes linear time in the length of the text."""
        return [self._extract(passage) for passage in passages]

    def _extract(self, passage: PassageText) -> Extraction:
        started = time.perf_counter()
        # The optional taggers refuse surrogates. Their dictionaries contain composed letters; PDF and macOS write letters and
        # accents separately.
        text = replace_surrogates(normalize("NFC", passage.text[:MAX_CHARS]))
        title = replace_surrogates(normalize("NFC", passage.title[:1000]))
        technical = is_technical(title, text)
        whole = f"{title}\n{text}"
        language = detect_language(whole)
        coref = Coreference(title, text, strict=technical or not names_topic(title, text))
        found = TripleCollector(coref, technical, direct_only=is_documentation(text))
        of_english = language in ("", "en")
        read_as: set[str] = set()

        def read_prose(text: str) -> None:
            read_as.add(_read_prose(text, language, found, whole))

        for place, block in enumerate(() if is_contents(title) else _with_keys_first(line_blocks(text))):
            if block.kind in ("record", "row", "table row"):
                of_first, is_row = block.kind == "row", block.kind != "record"
                # The stricter rule was tested with English records only; in other languages, it made a question lose its page.
                opens = place == 0 and (not of_english or _opens(text, block))
                topic_only = found.direct_only if of_english else coref.strict
                read_record(block.fields, found, of_first, is_row, opens, topic_only, read_prose)
            elif block.kind == "prose":
                found.coref.begin_paragraph()
                read_prose(block.text)
        found.link_names_to_title()
        return Extraction(
            passage=passage.id,
            extractor=self.name if TAGGED_LANGUAGES.isdisjoint(read_as) else self.tagged_name,
            entities=tuple(found.entities()),
            triples=tuple(found.triples)[:MAX_TRIPLES],
            took_ms=(time.perf_counter() - started) * 1000,
        )


def _opens(text: str, record: Block) -> bool:
    """Whether a record of several fields begins on the first line, as the header of a mail or note does."""
    return len(record.fields) > 1 and record.fields[0][0] in text.lstrip().partition("\n")[0]


def _with_keys_first(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yields the blocks. In the rows of a table, the column that names the subject comes first."""
    for (kind, _), group in groupby(blocks, key=lambda block: (block.kind, tuple(key for key, _ in block.fields))):
        rows = list(group)
        if kind in ("row", "table row"):
            yield from (Block(kind, fields=fields) for fields in key_first([row.fields for row in rows]))
        else:
            yield from rows


def _read_prose(text: str, language: str, found: TripleCollector, passage: str) -> str:
    """Reads a paragraph of a passage and returns its language. `language`: the passage's language; a paragraph may be in
    English."""
    of_passage, language = language, paragraph_language(text, language)
    if language in ("", "en"):
        sentences = split_sentences(text)
        # A title may be in any language: "Ven mi corazón is a 1942 film" is English.
        title = set(found.coref.title_words)
        if is_english([word for words in sentences for word in words if word.lower() not in title]):
            with found.coref.apart_from_title(of_passage not in ("", "en")):
                parse_sentences(sentences, found)
            return language
    read = read_names(text, language, passage)
    for name in read.names:
        found.add_name(normalise_phrase(name), may_be_title=not read.only_key_phrases)
    if not found.technical:
        for name, other in read.pairs:
            found.add_mention(normalise_phrase(name), normalise_phrase(other))
    return language
