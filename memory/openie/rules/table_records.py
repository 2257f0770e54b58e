"""Extracts triples from records: rows of a table and "key: value" lines. The column's name becomes the predicate."""

import re
from collections.abc import Callable, Sequence
from unicodedata import category

from memory.openie.rules.grammar.tokenizer import tokenize, word_set
from memory.openie.rules.triple_collector import TripleCollector
from memory.openie.rules.triple_filter import is_tautology, says
from memory.phrase_normalisation import normalise_phrase

_NAMING = word_set(
    "name title id person instrument item product project place site company organisation organization employee member "
    "customer author book film country city species part model device event course station"
)
_IDENTIFYING = frozenset({"name", "title"})
_ARTICLES = ("a ", "an ", "the ")
_TELLING = frozenset({"description", "purpose", "meaning"})
_PROPERTY_COLUMNS = word_set("type typ tipo тип タイプ 类型 format default required mandatory")
"""Columns that never name the subject of a row."""
_REFERENCES = ("see ", "refer to ", "siehe ", "voir ", "véase ", "см ", "参见", "参阅", "请参阅")
_REFERENCE_ENDS = ("を参照", "を参照してください")
_UNNAMED_KEY = re.compile(r"\s\+\s*[^\w\s+]*$|(?<!\+)\+[^\w\s+]+$")
"""The end of a shortcut whose key is a symbol: "Cmd + ;", but not "C++" or "Disney+"."""
_PUNCTUATION = frozenset("'\"‘’“”,;.:/()-–、，（）「」")
_SHORT_VALUE_MAX = 4
"""Maximum number of characters of a value whose symbols belong to it: "C#", "R$"."""
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"[\W\d]+")
_MAX_VALUE = 10
"""Maximum number of words of a value; a longer value is parsed as prose."""


def key_first(rows: Sequence[Sequence[tuple[str, str]]]) -> list[tuple[tuple[str, str], ...]]:
    """Returns the rows of one table. In each row, the field that names the row's subject comes first: the field of the first
    column whose values are all different, or of the first column if no column has only different values.

    Returns [] if the table has no header, or only one row and no column that names its subject.
    """
    if _is_headerless(rows):
        return []
    if len(rows) == 1 and sum(normalise_phrase(key) in _PROPERTY_COLUMNS for key, _ in rows[0]) > 1:
        return []  # "type: integer; default: 0" describes what a heading names
    columns = min(map(len, rows), default=0)
    for column in range(columns if len({row[0][1] for row in rows}) < len(rows) else 0):
        values = {row[column][1] for row in rows}
        if len(values) == len(rows) and all(len(value.split()) < _MAX_VALUE for value in values):
            return [(row[column], *row[:column], *row[column + 1 :]) for row in rows]
    return [tuple(row) for row in rows]


def _is_headerless(rows: Sequence[Sequence[tuple[str, str]]]) -> bool:
    """Whether a column's name with a number begins like a value: "Model 10: Model 20; Model 30: Model 40"."""
    # A name with a comma stays in the value: "Number 0, Green: Number 3, Green".
    fields = [field if field[0] else field[1].partition(": ")[::2] for row in rows for field in row]
    series = {name.split()[0] for name, _ in fields if _DIGIT.search(name) and " " in name}
    return any(value.split()[0] in series for _, value in fields if value.strip())


def read_record(
    fields: Sequence[tuple[str, str]],
    found: TripleCollector,
    of_first: bool,
    is_row: bool,
    about_document: bool,
    topic_only: bool,
    read_prose: Callable[[str], object],
) -> None:
    """Adds (subject, column, value) for each field, or a mention edge if the column has no name.

    The subject is the first value (always if `of_first`, otherwise if its key says that it is a name), or the title. The title
    only mentions the subject of a row (`is_row`), because the column's name does not relate the two. If `topic_only`, the title
    is the subject of a record in two cases only: the record opens the text (`about_document`), like the header of a mail; or
    the page has no sections, and its text names the title. `read_prose` reads long values.
    """
    if _only_counts(fields):
        return
    coref = found.coref
    subject = coref.title
    rest = list(fields)
    if not is_row:
        # "Metadata-Version: 2.4" comes before the name.
        rest.sort(key=lambda field: normalise_phrase(field[0]) not in _IDENTIFYING)
    first_key, first_value = rest[0]
    keys = set(normalise_phrase(first_key).split())
    is_name = bool(keys & _NAMING) and not first_value.startswith(_ARTICLES)  # "title: the song's title"
    if len(fields) > 1 and (of_first or is_name or not first_key):
        named = "" if is_row and _UNNAMED_KEY.search(first_value) else normalise_phrase(first_value)
        if is_row and not named:
            return  # about a symbol: "+", "Ctrl+↑"
        if named and named.count(" ") < _MAX_VALUE and not named.isdigit():
            subject, rest = named, rest[1:]
            found.add_name(subject)
            if first_key and keys & _NAMING and not is_row and not coref.strict:
                found.add_triple(coref.title, first_key, subject)
        elif is_row and not (named.isdigit() and any(says(normalise_phrase(value)) for _, value in fields)):
            return  # the subject is a whole sentence, or all values are numbers
    if found.technical and (not of_first or subject == coref.title or not says(subject)):
        # In technical text, "key: value" is as often a setting or code as a fact about the title.
        return
    if subject == coref.title and topic_only:
        is_topic = coref.is_in_text and not coref.strict and not coref.document_title
        if not (is_topic or about_document) or (coref.strict and coref.document_title):
            return
    for key, value in rest:
        if key.startswith(_ARTICLES) or (len(key) == 1 and key.isascii()):
            continue  # the table has no header, so its first row gave the key; or the key is a single letter
        words = tokenize(value[:2000])
        if len(words) > _MAX_VALUE + 4:
            read_prose(value)
            continue
        for part in _parts(value):
            phrase = "" if _has_symbol(part) else normalise_phrase(part)
            if phrase and any(char.isupper() for char in part):
                found.add_name(phrase)
            column = normalise_phrase(key)
            if not phrase or _is_reference(phrase) or (column in _TELLING and is_tautology(subject, phrase)):
                continue
            if _is_value(phrase, found) or (says(phrase) and (says(column) or column in _TELLING)):
                if key and not (subject == coref.title and _is_markup(key, subject)):
                    found.add_triple(subject, key, phrase, is_column=True)
                else:
                    found.add_mention(subject, phrase)


def _only_counts(fields: Sequence[tuple[str, str]]) -> bool:
    """Whether the columns' names are one word with different numbers: "Button 1", "Button 2"."""
    words = {_NUMBER.sub("", key) for key, _ in fields}
    return len(fields) > 1 and len(words) == 1 and words != {""} and len({key for key, _ in fields}) > 1


def _is_markup(key: str, title: str) -> bool:
    """Whether the key of a record about a title in another script than Latin is markup: "desc: ", "frame: ".

    A key with capitals, such as "Windows", is a name.
    """
    return key.isascii() and key.islower() and not any(char.isascii() and char.isalpha() for char in title)


def _is_reference(phrase: str) -> bool:
    """Whether a value only refers to another place."""
    return phrase.startswith(_REFERENCES) or phrase.endswith(_REFERENCE_ENDS)


def _has_symbol(value: str) -> bool:
    """Whether a value loses its meaning as a phrase without symbols: "Ctrl+←", "Cmd + ;", "*** *** or"."""
    visible = [char for char in value if not char.isspace() and char not in _PUNCTUATION]
    mostly_symbols = len(visible) > _SHORT_VALUE_MAX and sum(map(str.isalnum, visible)) * 2 <= len(visible)
    if mostly_symbols or _UNNAMED_KEY.search(value):
        return True
    return not value.isascii() and any(category(char) in ("So", "Sm") for char in value if not char.isascii())


def _is_value(phrase: str, found: TripleCollector) -> bool:
    """Whether a value is a fact whatever its column is. Marks and single letters are facts only if the title names the
    topic."""
    words = phrase.split()
    informative = phrase[:1].isdigit() or says(phrase) or (len(words) > 1 and any(len(word) > 1 for word in words))
    return not found.technical and (informative or not found.coref.strict)


def _parts(value: str) -> list[str]:
    """Returns the values in a list of names ("Ann Lee, Bo Ek"); a value with other commas is not divided."""
    parts = [part.split("<")[0].strip() for part in value.replace(";", ",").split(",")]
    parts = [part for part in parts if part]
    if 1 < len(parts) <= 12 and all(part[0].isupper() and len(part.split()) <= 4 for part in parts):
        return parts
    return [value.split("<")[0].strip() or value]
