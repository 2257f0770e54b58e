"""What a document is called: names that follow from its URI, title and metadata alone.

Nothing of this is stored. A moved file has other names as soon as its URI has changed, and a document of an older store has
the names that a new one has.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from store.types import Document

INDEX_STEMS = frozenset(("index", "_index", "readme", "default"))
"""A file of one of these stems is the page of its folder, and is called like the folder."""

ALIAS_KEYS = ("aliases", "alias")
TAG_KEYS = ("tags", "tag", "keywords", "categories", "category")
TEXT_KEYS = ("description", "summary", "subject", "author", "authors", "creator")
"""Keys of metadata: other names of a document; words about it, several in a text; and texts about it."""

MAX_FOLDERS = 8
"""Folder names of a document, the nearest. Those above the followed folder do not count."""
MAX_NAMES = 64
MAX_NAME_CHARS = 300

_EXTENSION = re.compile(r"(?<=.)\.[A-Za-z][A-Za-z0-9]{0,9}\Z|(?<=.)\.(?:7z|[1-9])\Z")
_EXPORT_ID = re.compile(r"\s+[0-9a-f]{32}\Z")
"""What Notion appends to the name of each file and folder that it exports."""
_HASH = re.compile(r"(?=[a-z-]*\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,})*|(?=\w*\d)(?=\w*[A-Z])(?=\w*[a-z])\w{20,}")
_SEPARATORS = re.compile(r"\s*[,;]\s*")


@dataclass(frozen=True, slots=True)
class DocumentNames:
    """`own`: what the document is called: its file, its title and its aliases. `about`: its folders, tags, description and
    properties. Each name once; none is a number or a hash."""

    own: tuple[str, ...]
    about: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.own, *self.about)))


@dataclass(frozen=True, slots=True)
class UriPath:
    """A URI's path as folder names and the name of the file, decoded, without what Notion appends; and the fragment."""

    scheme: str
    folders: tuple[str, ...]
    file: str
    fragment: str

    @property
    def stem(self) -> str:
        return _EXPORT_ID.sub("", without_extension(self.file))


def without_extension(file: str) -> str:
    """A file's name without the ending that tells its format: "Release 1.0" has none."""
    return _EXTENSION.sub("", file)


def document_names(document: Document) -> DocumentNames:
    """The names of a document, in a fixed order."""
    path = uri_path(document.uri)
    stem = file_stem(path)
    folders = folders_below(document, path)
    own = [document.title, stem, *metadata_texts(document.metadata, ALIAS_KEYS)]
    about = [path.stem] if path.fragment and path.file else []
    about += folders
    about += metadata_texts(document.metadata, TAG_KEYS, split=True)
    about += metadata_texts(document.metadata, TEXT_KEYS)
    own_names = tuple(dict.fromkeys(_usable(own)))[:MAX_NAMES]
    others = (name for name in dict.fromkeys(_usable(about)) if name not in own_names)
    return DocumentNames(own_names, tuple(others)[:MAX_NAMES])


def names_text(document: Document) -> str:
    """The names of a document in lines: its own, an empty line, the others. "" if the names add nothing to its passages: the
    title alone stands at the head of each of them."""
    names = document_names(document)
    if not names.about and set(names.own) <= {" ".join(document.title.split())[:MAX_NAME_CHARS]}:
        return ""
    return "\n".join((*names.own, "", *names.about))


def own_names(text: str) -> list[str]:
    """What a document is called, from its `names_text`."""
    return text.partition("\n\n")[0].split("\n") if not text.startswith("\n") else []


def uri_path(uri: str) -> UriPath:
    """The parts of a URI that were names of folders and files."""
    parts = urlsplit(uri)
    *folders, file = unquote(parts.path).split("/")
    return UriPath(
        parts.scheme, tuple(_EXPORT_ID.sub("", name) for name in folders if name), file, unquote(parts.fragment)
    )


def file_stem(path: UriPath) -> str:
    """The name that the document's file gives it: of an index file the folder's. "" if the URI names no file of its own."""
    if path.fragment:
        # An attachment has a file name, a line of a file of documents has none.
        return without_extension(path.fragment.rpartition("/")[2]) if "/" in path.fragment else ""
    if path.scheme != "file" and not path.folders and not _EXTENSION.search(path.file):
        return ""  # an id: of a message, of an added document
    if path.stem.casefold() in INDEX_STEMS:
        return path.folders[-1] if path.folders else ""
    return path.stem


def folders_below(document: Document, path: UriPath) -> tuple[str, ...]:
    """The names of the folders between the followed folder and the document, the nearest last."""
    root = document.source if document.source.startswith("/") else ""
    depth = len([name for name in root.split("/") if name])
    folders = path.folders[depth:] if root else path.folders
    return folders[-MAX_FOLDERS:]


def is_telling(name: str) -> bool:
    """Whether a name says anything: it is no number, date or hash."""
    words = name.split()
    return any(any(char.isalpha() for char in word) and not _HASH.fullmatch(word) for word in words)


def _usable(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        clean = " ".join(name.split())[:MAX_NAME_CHARS]
        if clean and is_telling(clean):
            yield clean


def metadata_texts(metadata: Mapping[str, Any], keys: Iterable[str], split: bool = False) -> Iterator[str]:
    """The texts under some keys of metadata, single or in lists; with `split` the parts between commas."""
    for key in keys:
        value = metadata.get(key)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                yield from _SEPARATORS.split(text) if split else (text,)
