"""What reading takes from a file's name: what it says about the format, and a title where the content has none."""

from collections.abc import Iterable
from dataclasses import dataclass

from consumers.parsing.formats.not_documents import NotRead, kind_of
from consumers.parsing.formats.registry import GZIP


@dataclass(frozen=True, slots=True)
class FormatHint:
    """All that a name says about the format."""

    ending: str
    not_read: NotRead | None
    """The kind of file that is skipped, where the name is one's."""


def format_hint(name: bytes) -> FormatHint:
    ending = ending_of(name)
    return FormatHint(ending, kind_of(_base(name).decode("utf-8", "replace").lower(), ending))


def ending_of(name: bytes) -> str:
    """The lower-case ending of a file's name without the dot, "" where it has none."""
    stem, dot, ending = _base(name).rpartition(b".")
    return ending.decode("ascii", "replace").lower() if dot and stem else ""


def stem_of(name: bytes) -> str:
    """A file's name without folder and ending, as text."""
    base = _base(name)
    stem, dot, _ = base.rpartition(b".")
    return (stem if dot and stem else base).decode("utf-8", "replace")


def unpacked_name(name: bytes) -> bytes:
    """The name of the file that gzip packed in a file of this name."""
    return name[: -len(b".gz")] if ending_of(name) in GZIP.endings else name


def certainly_reads_alike(old: bytes, new: bytes, titles: Iterable[str]) -> bool:
    """Whether a file that gave documents of these titles as `old` surely gives the same ones as `new`.

    It is not sure where a title is the one that the old name gives: only reading says whether it stands in the content too.
    """
    if _base(old) == _base(new):
        return True
    old_names, new_names = (old, unpacked_name(old)), (new, unpacked_name(new))
    if [format_hint(name) for name in old_names] != [format_hint(name) for name in new_names]:
        return False
    return {stem_of(name) for name in old_names}.isdisjoint(titles)


def _base(name: bytes) -> bytes:
    return name.rsplit(b"/", 1)[-1]
