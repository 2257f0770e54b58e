"""Names of a document, which are derived only from its URI, title and metadata.

Names are not stored. When a file is moved, its names change together with its URI. Documents of older stores have names too.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from store.types import Document

INDEX_STEMS = frozenset(("index", "_index", "readme", "default"))
"""A file with one of these stems is the page of its folder; the name of the document is the folder's name."""

ALIAS_KEYS = ("aliases", "alias")
TAG_KEYS = ("tags", "tag", "keywords", "categories", "category")
TEXT_KEYS = ("description", "summary", "subject", "attached_to", "author", "authors", "creator")
"""Metadata keys of a document: `ALIAS_KEYS` for other names, `TAG_KEYS` for keywords (several in one text), `TEXT_KEYS` for
descriptive texts."""

MAX_FOLDERS = 8
"""Maximum number of a document's folder names, nearest first. Folders above the followed folder are not included."""
MAX_NAMES = 64
MAX_NAME_CHARS = 300

_EXTENSION = re.compile(r"(?<=.)\.[A-Za-z][A-Za-z0-9]{0,9}\Z|(?<=.)\.(?:7z|[1-9])\Z")
_EXPORT_ID = re.compile(r"\s+[0-9a-f]{32}\Z")
"""Matches the id that Notion appends to the names of exported files and folders."""
_HASH = re.compile(r"(?=[a-z-]*\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,})*|(?=\w*\d)(?=\w*[A-Z])(?=\w*[a-z])\w{20,}")
_SEPARATORS = re.compile(r"\s*[,;]\s*")


@dataclass(frozen=True, slots=True)
class DocumentNames:
    """The names of a document. `own` contains the names of its file, its title and its aliases. `about` contains its folders,
    tags, description and properties. Each name occurs once, and no name is a number or a hash."""

    own: tuple[str, ...]
    about: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.own, *self.about)))


@dataclass(frozen=True, slots=True)
class UriPath:
    """The decoded parts of a URI: the names of the folders and the file without Notion's ids, and the fragment."""

    scheme: str
    folders: tuple[str, ...]
    file: str
    fragment: str

    @property
    def stem(self) -> str:
        return _EXPORT_ID.sub("", without_extension(self.file))


def without_extension(file: str) -> str:
    """Returns a file's name without the extension of its format. "Release 1.0" has no such extension."""
    return _EXTENSION.sub("", file)


def document_names(document: Document) -> DocumentNames:
    """Returns the names of a document, in a fixed order."""
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
    """Returns the names of a document as lines: its own names, an empty line, the other names.

    Returns "" if the names add nothing to the passages, each of which begins with the title.
    """
    names = document_names(document)
    if not names.about and set(names.own) <= {" ".join(document.title.split())[:MAX_NAME_CHARS]}:
        return ""
    return "\n".join((*names.own, "", *names.about))


def own_names(text: str) -> list[str]:
    """Extracts a document's own names from its `names_text`."""
    return text.partition("\n\n")[0].split("\n") if not text.startswith("\n") else []


def split_url(text: str) -> SplitResult:
    """Splits a URL into its parts. A text that is not a valid URL, such as "http://[x", is treated as a path."""
    try:
        return urlsplit(text)
    except ValueError:
        return SplitResult("", "", text, "", "")


def uri_path(uri: str) -> UriPath:
    """Splits a URI into the names of its folders and file, and its fragment."""
    parts = split_url(uri)
    *folders, file = unquote(parts.path).split("/")
    return UriPath(
        parts.scheme, tuple(_EXPORT_ID.sub("", name) for name in folders if name), file, unquote(parts.fragment)
    )


def file_stem(path: UriPath) -> str:
    """Returns the document's name according to its file; for an index file, the folder's name; "" if the URI does not name a
    file of the document."""
    if path.fragment:
        # The fragment of an attachment contains a file name; the fragment of a line in a file of documents does not.
        return without_extension(path.fragment.rpartition("/")[2]) if "/" in path.fragment else ""
    if path.scheme != "file" and not path.folders and not _EXTENSION.search(path.file):
        return ""  # an id of a message or of an added document
    if path.stem.casefold() in INDEX_STEMS:
        return path.folders[-1] if path.folders else ""
    return path.stem


def folders_below(document: Document, path: UriPath) -> tuple[str, ...]:
    """Returns the names of the folders between the followed folder and the document, nearest folder last."""
    root = document.source if document.source.startswith("/") else ""
    depth = len([name for name in root.split("/") if name])
    folders = path.folders[depth:] if root else path.folders
    return folders[-MAX_FOLDERS:]


def is_meaningful(name: str) -> bool:
    """Whether a name is meaningful, that is, not a number, a date or a hash."""
    words = name.split()
    return any(any(char.isalpha() for char in word) and not _HASH.fullmatch(word) for word in words)


def _usable(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        clean = " ".join(name.split())[:MAX_NAME_CHARS]
        if clean and is_meaningful(clean):
            yield clean


def metadata_texts(metadata: Mapping[str, Any], keys: Iterable[str], split: bool = False) -> Iterator[str]:
    """Yields the texts under the given metadata keys, single or in lists. With `split`, splits at commas and semicolons."""
    for key in keys:
        value = metadata.get(key)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                yield from _SEPARATORS.split(text) if split else (text,)
