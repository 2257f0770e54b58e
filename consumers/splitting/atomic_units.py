"""Divides blocks into units. A passage may only begin or end between units."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from zlib import crc32

from consumers.splitting.blocks import TextBlock
from consumers.splitting.boundaries import Unit
from consumers.splitting.sentences import sentence_starts
from consumers.splitting.tokens import TOKEN, count_tokens

_WORDS, _SENTENCE, _LINE, _PARAGRAPH = range(4)
_RUN_MASK = 15
"""A run of words ends where these 4 bits of a hash are zero, on average after 16 tokens."""
_RUN_LIMIT = 64
_KEYED_CHARS = 200


def units_of(blocks: Sequence[TextBlock], counts: Sequence[int], max_tokens: int) -> list[Unit]:
    """Returns each block as one unit if it fits into a passage. Divides longer blocks into sentences, then lines, then runs
    of words."""
    units: list[Unit] = []
    for index, (block, tokens) in enumerate(zip(blocks, counts, strict=True)):
        level = _PARAGRAPH if block.joint.count("\n") > 1 else _LINE
        if tokens <= max_tokens:
            units.append(Unit(index, 0, len(block.text), tokens, level, _key(block.text)))
        else:
            units.extend(_pieces(index, block.text, level, max_tokens))
    return units


def _key(text: str) -> int:
    """Returns a hash of the beginning of a piece. The hash does not depend on white space."""
    beginning = " ".join(text[:_KEYED_CHARS].split())
    return int.from_bytes(blake2b(beginning.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _pieces(block: int, text: str, level: int, max_tokens: int) -> Iterator[Unit]:
    for start, end in _sentences_or_lines(text, max_tokens):
        tokens = count_tokens(text[start:end])
        unit_level = level if start == 0 else _SENTENCE
        if tokens <= max_tokens:
            if tokens:
                yield Unit(block, start, end, tokens, unit_level, _key(text[start:end]))
            continue
        for run_start, run_end, run_tokens in _runs(text, start, end, min(_RUN_LIMIT, max_tokens)):
            at = unit_level if run_start == start else _WORDS
            yield Unit(block, run_start, run_end, run_tokens, at, _key(text[run_start:run_end]))


def _sentences_or_lines(text: str, max_tokens: int) -> Iterator[tuple[int, int]]:
    starts = [*sentence_starts(text), len(text)]
    for start, end in pairwise(starts):
        # A token has at least one character, so a sentence of at most `max_tokens` characters is within the limit.
        if end - start <= max_tokens or "\n" not in text[start:end] or count_tokens(text[start:end]) <= max_tokens:
            yield start, end
            continue
        while start < end:
            found = text.find("\n", start, end)
            stop = end if found < 0 else found + 1
            yield start, stop
            start = stop


def _runs(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int, int]]:
    """Yields runs of words in an overlong sentence: (start, end, tokens). A hash of two neighbouring words decides where a
    run ends."""
    run_start, tokens, previous = start, 0, ""
    for match in TOKEN.finditer(text, start, end):
        word = match.group()
        ends_run = tokens >= 4 and crc32(f"{previous} {word}".encode("utf-8", "surrogatepass")) & _RUN_MASK == 0
        if tokens and (ends_run or tokens >= limit):
            yield run_start, match.start(), tokens
            run_start, tokens = match.start(), 0
        tokens += 1
        previous = word
    if tokens:
        yield run_start, end, tokens
