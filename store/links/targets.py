"""Resolves links to documents.

A link is looked up under several keys, one after another. A document is registered under the keys that follow from its URI,
title and metadata. The first key under which a document is registered decides. If several documents are registered under this
key, a fixed order, which ends with the URI, selects one of them. The result therefore depends only on the present documents,
not on the order of their arrival.

A link is looked up in this order:

1. its address, as the `url` of a document; a message's address (`mid:`, RFC 2392), as its Message-ID; a target that begins with
   "#", only as the URI of a document in the same file;
2. the file at its path, relative to the folder of the linking document, then relative to the document itself as if it were a
   folder, for sites whose addresses have no extensions;
3. a path of a site: first a path that a document declares (`permalink`, or an alias that begins with "/"), then files whose
   paths end with it;
4. a name: a file's name, an alias, a title.

A path matches with or without a page's extension, and a folder matches its index file. Matching ignores case; in names, spaces,
"-" and "_" are equivalent.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple
from unicodedata import normalize
from urllib.parse import unquote

from store.links.names import (
    ALIAS_KEYS,
    INDEX_STEMS,
    file_stem,
    metadata_texts,
    split_url,
    uri_path,
    without_extension,
)
from store.types import Document, State

SITE_PATH_KEYS = ("permalink", "slug", "url", *ALIAS_KEYS)
"""Metadata keys whose texts may be the document's path on its site."""
ADDRESS_KEYS = ("url", "canonical", "source_url")
"""Metadata keys that contain the document's address."""
MESSAGE_KEYS = ("message_id",)
"""Metadata keys that contain the Message-ID of a document that is an e-mail."""
MIN_HOST_SEGMENTS = 2
"""Minimum number of names in an address's path for matching it against files, because too many files have the same last
name."""

PAGE_ENDINGS = frozenset(
    ["md", "markdown", "mdx", "html", "htm", "xhtml", "php", "asp", "aspx", "jsp", "org", "rst", "txt"]
)
"""Extensions that a link to a page may include or omit. The link "Search.png" does not match the page "Search"."""

PART_PREFIX = "#"
"""Prefix of a link's target that is the fragment of another document in the same file: an attachment, another day of a chat."""
THREAD_SCHEME = "mid:"
"""Scheme of links from a message to the message that it answers."""

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_NAME_SEPARATORS = re.compile(r"[\s_-]+")


class Lookup(NamedTuple):
    """A key. The folder path of a matching document must end with the names `folders`."""

    key: str
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """The sort criteria of a document: its path as folded names without the file's extension, and its keys' ranks."""

    path: tuple[str, ...]
    keys: Mapping[str, int]
    """The document's keys with their ranks. Among the documents under one key, the one with the lowest rank is chosen."""


class LinkTargets:
    """The documents to which links can lead. Thread-safe.

    The documents are registered when the first link is resolved, so a memory without links needs no work. After that, `change`
    registers changed documents. Documents may be added and removed in any order.
    """

    def __init__(self, documents: dict[str, Document]) -> None:
        """`documents`: all documents, by URI, which their owner keeps up to date."""
        self._documents = documents
        self._lock = Lock()
        self._registering = Lock()
        """Held while all documents are registered, which takes seconds. `change`, and so a commit, does not wait for it."""
        self._is_registered = False
        self._changed: set[str] = set()
        """URIs of the documents that changed before all documents were registered."""
        self._places: dict[str, _Place] = {}
        self._holders: dict[str, set[str]] = {}
        """The URIs of the documents registered under each key."""

    def change(self, documents: Iterable[Document], removed: Iterable[str]) -> None:
        """Notes that a commit has added or replaced `documents` and removed other documents."""
        with self._lock:
            if not self._is_registered:
                self._changed.update((document.uri for document in documents), removed)
                return
            for uri in removed:
                self._remove(uri)
            for document in documents:
                self._register(document)

    def resolve(self, target: str, source: str) -> str | None:
        """Returns the URI of the document to which the link `target` in the document `source` leads; None if it leads to no
        document. An empty target leads to the document itself."""
        self._register_all()
        with self._lock:
            if not target:
                return source if source in self._places else None
            folder = _path_names(source)[:-1]
            for lookup in lookups(target, source):
                found: Collection[str] = self._holders.get(lookup.key, ())
                if lookup.folders:
                    found = [uri for uri in found if _ends_with(self._places[uri].path[:-1], lookup.folders)]
                if found:
                    return min(found, key=lambda uri: self._order(uri, lookup.key, folder))
        return None

    def _register_all(self) -> None:
        """Registers all documents if that has not been done yet."""
        with self._registering:
            if self._is_registered:
                return
            with self._lock:
                self._changed.clear()
            # No other thread reads or changes the registered documents until all are registered.
            for document in self._documents.copy().values():
                self._register(document)
            with self._lock:
                for uri in self._changed:
                    self._remove(uri)
                    if (changed := self._documents.get(uri)) is not None:
                        self._register(changed)
                self._is_registered = True

    def _register(self, document: Document) -> None:
        """Replaces the document with this URI. A document that is not indexed has no passage to which a link could lead."""
        self._remove(document.uri)
        if document.state is State.INDEXED:
            keys = document_keys(document)
            self._places[document.uri] = _Place(_path_names(document.uri), keys)
            for key in keys:
                self._holders.setdefault(key, set()).add(document.uri)

    def _remove(self, uri: str) -> None:
        place = self._places.pop(uri, None)
        for key in place.keys if place is not None else ():
            holders = self._holders[key]
            holders.discard(uri)
            if not holders:
                del self._holders[key]

    def _order(self, uri: str, key: str, folder: tuple[str, ...]) -> tuple[int, int, int, str]:
        """Returns a sort key: first by rank, then by the most folders in common with the linking document, then by the shortest
        path, then by URI."""
        place = self._places[uri]
        common = 0
        for mine, other in zip(place.path, folder, strict=False):
            if mine != other:
                break
            common += 1
        return place.keys[key], -common, len(place.path), uri


def document_keys(document: Document) -> dict[str, int]:
    """Returns the keys under which links find a document, with their ranks."""
    keys: dict[str, int] = {}

    def put(key: str, rank: int) -> None:
        keys[key] = min(rank, keys.get(key, rank))

    put(f"uri {document.uri}", 0)
    path = uri_path(document.uri)
    file = path.fragment.rpartition("/")[2] if path.fragment else path.file
    stem = file_stem(path)
    if not path.fragment:
        for rank, written in enumerate(_spellings(_raw_path(document.uri))):
            put(f"path {_root(document.uri)}{written}", rank)
    if stem:
        put(_name_key(stem), 1 if path.stem.casefold() in INDEX_STEMS else 0)
        put(_name_key(file), 0)
    for alias in metadata_texts(document.metadata, ALIAS_KEYS):
        put(_name_key(alias), 1)
    if document.title:
        put(_name_key(document.title), 2)
    for text in metadata_texts(document.metadata, SITE_PATH_KEYS):
        if not _SCHEME.match(text) and (names := _site_names(text)):
            put(f"site {'/'.join(names)}", 0)
    for text in metadata_texts(document.metadata, MESSAGE_KEYS):
        put(_message_key(text), 0)
    for text in metadata_texts(document.metadata, ADDRESS_KEYS):
        if address := _address(text):
            put(f"address {address}", 0)
    return keys


def lookups(target: str, source: str) -> Iterator[Lookup]:
    """Yields the keys of the link `target` in the document `source`, in the order of lookup."""
    target = target.strip()
    if target.startswith(PART_PREFIX):
        yield Lookup(f"uri {source.partition('#')[0]}{target}")
        return
    if _SCHEME.match(target):
        yield from _address_lookups(target)
        return
    written = unquote(target)
    paths = dict.fromkeys((written, written.partition("?")[0].rstrip() or written))
    if not written.startswith("/"):
        for path in paths:
            yield from _relative_lookups(path, source)
    if written.startswith("."):
        return
    if written.startswith("/"):
        for path in paths:
            yield Lookup(f"path {_root(source)}{_folded(path.rstrip('/'))}")
    for path in paths:
        names = _site_names(path)
        if written.startswith("/") or len(names) > 1:
            yield Lookup(f"site {'/'.join(names)}")
            yield from _suffix_lookups(names)
    if "/" not in written:
        for name in dict.fromkeys(name for path in paths for name in (path, _page_name(path))):
            yield Lookup(_name_key(name))


def _address_lookups(target: str) -> Iterator[Lookup]:
    yield Lookup(f"uri {target}")
    if target.startswith(THREAD_SCHEME):
        yield Lookup(_message_key(unquote(target.removeprefix(THREAD_SCHEME))))
    if address := _address(target):
        yield Lookup(f"address {address}")
        names = _site_names(unquote(split_url(target).path))
        if names:
            yield Lookup(f"site {'/'.join(names)}")
        if len(names) >= MIN_HOST_SEGMENTS:
            yield from _suffix_lookups(names)


def _relative_lookups(path: str, source: str) -> Iterator[Lookup]:
    parts = _raw_path(source).split("/")
    for base in (parts[:-1], [*parts[:-1], without_extension(parts[-1])]):
        joined = _joined(base, path)
        if joined is not None:
            yield Lookup(f"path {_root(source)}{_folded(joined)}")


def _joined(base: list[str], path: str) -> str | None:
    """Joins the relative `path` to the folder `base`. Returns None if the result would be above the root."""
    names = [name for name in base if name]
    for name in path.split("/"):
        if name == "..":
            if not names:
                return None
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    return "/" + "/".join(names)


def _suffix_lookups(names: tuple[str, ...]) -> Iterator[Lookup]:
    if names:
        yield Lookup(_name_key(names[-1]), tuple(_NAME_SEPARATORS.sub(" ", name) for name in names[:-1]))


def _site_names(path: str) -> tuple[str, ...]:
    """Returns the folded names in a site path, without the file's extension. For an index file, returns its folder's names."""
    names = [_folded(name) for name in path.split("/") if name not in ("", ".", "..")]
    if names:
        names[-1] = _page_name(names[-1])
        if names[-1] in INDEX_STEMS:
            names.pop()
    return tuple(names)


def _page_name(file: str) -> str:
    """Returns a file name without the extension of a page."""
    stem, _, ending = file.rpartition(".")
    return stem if stem and ending.lower() in PAGE_ENDINGS else file


def _path_names(uri: str) -> tuple[str, ...]:
    """Returns the names in a document's path, folded in the same way as document names."""
    return tuple(_NAME_SEPARATORS.sub(" ", name) for name in _site_names(_raw_path(uri)))


def _ends_with(path: tuple[str, ...], names: tuple[str, ...]) -> bool:
    return path[-len(names) :] == names


def _spellings(path: str) -> Iterator[str]:
    """Yields the folded spellings of a file's path, beginning with the full path."""
    path = _folded(path)
    yield path
    folder, _, file = path.rpartition("/")
    stem = without_extension(file)
    if stem != file:
        yield f"{folder}/{stem}"
    if stem in INDEX_STEMS:
        yield folder


def _raw_path(uri: str) -> str:
    return unquote(split_url(uri).path)


def _root(uri: str) -> str:
    parts = split_url(uri)
    return f"{parts.scheme}://{parts.netloc}"


def _address(text: str) -> str:
    """Normalises an http(s) address: removes the scheme, "www.", the fragment, the extension and the index page. Returns "" for
    any other text."""
    parts = split_url(text) if _SCHEME.match(text) else None
    if parts is None or parts.scheme not in ("http", "https"):
        return ""
    query = f"?{parts.query}" if parts.query else ""
    return "/".join((parts.netloc.casefold().removeprefix("www."), *_site_names(unquote(parts.path)))) + query


def _message_key(identity: str) -> str:
    return f"message {identity.strip().removeprefix('<').removesuffix('>')}"


def _name_key(name: str) -> str:
    return f"name {_NAME_SEPARATORS.sub(' ', _folded(name)).strip()}"


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else normalize("NFC", normalize("NFC", text).casefold())
