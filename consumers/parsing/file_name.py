"""Derives a hint of the format and a fallback title from a file's name."""

from collections.abc import Iterable

from consumers.parsing.formats.not_documents import NotRead, kind_of
from consumers.parsing.formats.registry import GZIP


def format_hint(name: bytes) -> tuple[str, NotRead | None]:
    """Returns (ending, kind of file to skip). The kind is None unless the name is typical of such a kind."""
    ending = ending_of(name)
    return ending, kind_of(_base(name).decode("utf-8", "replace").lower(), ending)


def ending_of(name: bytes) -> str:
    """Returns the ending of a file's name in lower case without the dot, or "" if it has none."""
    stem, dot, ending = _base(name).rpartition(b".")
    return ending.decode("ascii", "replace").lower() if dot and stem else ""


def stem_of(name: bytes) -> str:
    """Returns a file's name without folder and ending."""
    base = _base(name)
    stem, dot, _ = base.rpartition(b".")
    return (stem if dot and stem else base).decode("utf-8", "replace")


def unpacked_name(name: bytes) -> bytes:
    """Returns the name without `.gz`: the name of the file inside."""
    return name[: -len(b".gz")] if ending_of(name) in GZIP.endings else name


def parses_alike(old: bytes, new: bytes, titles: Iterable[str]) -> bool:
    """Whether a renamed file certainly yields the same documents. `titles` are the titles of its documents.

    False if a title equals the old name's stem: the title may come from the name.
    """
    if _base(old) == _base(new):
        return True
    old_names, new_names = (old, unpacked_name(old)), (new, unpacked_name(new))
    if [format_hint(name) for name in old_names] != [format_hint(name) for name in new_names]:
        return False
    return {stem_of(name) for name in old_names}.isdisjoint(titles)


def _base(name: bytes) -> bytes:
    """Returns the name without its folder, and without the `.txt` that Sphinx appends to the sources that it publishes."""
    base = name.rsplit(b"/", 1)[-1]
    return base[: -len(b".txt")] if base.lower().endswith((b".rst.txt", b".md.txt")) else base
