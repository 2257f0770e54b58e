"""The output of the consumers: events of sources, and parsed documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.omissions import Omission

Triple = tuple[str, str, str]

INTERNAL_KEYS = frozenset(("kafka", "record", "left_out"))
"""Metadata keys reserved for hippod: origin of a message or record, and stored account of omissions."""

READER_VERSION = 9
"""Incremented whenever a change of parsing or splitting changes the documents of a file. Files read by an earlier version are
then read again; their unchanged passages are not extracted again."""

EXCLUSIONS_VERSION = 2
"""Incremented with every row added to `consumers.folder.tree.default_exclusions`. A new row removes documents of files that
were read under an earlier version only after an operator's confirmation."""

EMPTY = "empty"
"""Mark in a file's position: the file has no document in the memory, because it yielded none or its documents were
removed on request. A file without documents and without this mark is read again at the next start."""

Stamp = tuple[int, int, int]
"""(size, mtime in ns, inode)."""


def content_digest(hexadecimal: str, size: int, max_bytes: int | None) -> str:
    """Returns the content digest of a file. `size` is the file's size in bytes; at most `max_bytes` of the file are read.

    `hexadecimal` is the BLAKE2b-128 digest of the bytes that were read. If the file is larger than `max_bytes`, the limit is
    appended, because the documents depend on the limit.
    """
    return hexadecimal if max_bytes is None or size <= max_bytes else f"{hexadecimal}:{max_bytes}"


def stated_metadata(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the metadata in a document's content. A key reserved for hippod gets a "_" appended: `kafka_`, `record_`,
    `left_out_`.

    Must be called for every document before hippod adds its own keys.
    """
    out = {key: value for key, value in stated.items() if key not in INTERNAL_KEYS}
    for key in sorted(INTERNAL_KEYS & stated.keys()):
        name = f"{key}_"
        while name in out:
            name += "_"
        out[name] = stated[key]
    return out


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Identifies the version of a file that was read. Equal fingerprints mean that the file need not be read again.

    `digest` is the digest of the content (`content_digest`). Equal digests mean equal content, even if size or mtime
    differ.
    """

    size: int
    mtime_ns: int
    inode: int
    digest: str | None = None
    exclusions: int = field(default=EXCLUSIONS_VERSION, compare=False)
    """Version of the default exclusions when the file was read."""

    @property
    def stamp(self) -> Stamp:
        """Size, mtime (ns) and inode, which are known without reading the content."""
        return self.size, self.mtime_ns, self.inode

    def reads_as_far(self, max_bytes: int) -> bool:
        """Whether reading with this limit yields the same part of the file."""
        return self.digest is None or self.digest == content_digest(self.digest.partition(":")[0], self.size, max_bytes)

    def to_json(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "mtime_ns": self.mtime_ns,
            "inode": self.inode,
            "digest": self.digest,
            "reader": READER_VERSION,
            "exclusions": self.exclusions,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Fingerprint":
        """Reads a stored position. Drops the digest if the file was read by another `READER_VERSION`, because its documents may
        now differ."""
        digest = value.get("digest") if value.get("reader") == READER_VERSION else None
        exclusions = int(value.get("exclusions", 1))
        return cls(int(value["size"]), int(value["mtime_ns"]), int(value["inode"]), digest, exclusions)


@dataclass(frozen=True, slots=True)
class FileChanged:
    """A followed file is new or changed, and has settled."""

    uri: str
    path: bytes
    """The path as the operating system reports it; names need not be UTF-8."""
    source: str
    fingerprint: Fingerprint
    scanned: bool = field(default=False, compare=False)
    """Whether a scan with many differences found the file. Such a file may wait; a newly saved file may not."""


@dataclass(frozen=True, slots=True)
class FileMoved:
    """A followed file was renamed; its passages are kept."""

    old_uri: str
    uri: str
    path: bytes
    source: str
    fingerprint: Fingerprint
    scanned: bool = field(default=False, compare=False)
    """See `FileChanged.scanned`."""


@dataclass(frozen=True, slots=True)
class FileRemoved:
    """A followed file is gone or no longer followed."""

    uri: str
    source: str


@dataclass(frozen=True, slots=True)
class FileRefusal:
    """Why a file is not read, and what to do about it."""

    reason: str
    code: FailureCode
    may_recover: bool = False
    """Whether a retry may succeed (the document is `failed`). Otherwise the configuration excludes the file (`skipped`)."""


@dataclass(frozen=True, slots=True)
class FileRefused:
    """A file is not read at all (no permission, not a regular file, a link)."""

    uri: str
    source: str
    refusal: FileRefusal
    fingerprint: Fingerprint | None = None
    scanned: bool = field(default=False, compare=False)
    """See `FileChanged.scanned`."""


FileEvent = FileChanged | FileMoved | FileRemoved | FileRefused


@dataclass(frozen=True, slots=True)
class Link:
    """A link from a passage, as its author wrote it. Only the store can resolve it to a document.

    `target` is a relative path, a page name or an address, without the fragment. `heading` is the fragment: the name of a
    heading, or `^id` for an Obsidian block. `text` is the visible text. A target that begins with "#" is the fragment of
    another document's URI in the same file, such as an attachment of an e-mail.
    """

    target: str
    heading: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document's text, and the unit of retrieval.

    `title` is the document's title, followed by the section's heading if there is one. The title is embedded together
    with the text and is part of the passage's identity. `location` is the beginning of the passage: any of `page`,
    `heading`, `line`, `sheet`, `row` (counted from 1), `time`.
    """

    title: str
    text: str
    location: Mapping[str, Any] = field(default_factory=dict)
    triples: tuple[Triple, ...] | None = None
    links: tuple[Link, ...] = ()
    """The links in the text and in its headings."""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A parsed document. If parsing failed or the content is not to be indexed (`skipped`), `error` replaces the passages."""

    uri: str
    title: str = ""
    passages: tuple[Passage, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    modified_at: float | None = None
    error: str | None = None
    skipped: bool = False
    deleted: bool = False
    """Whether a JSON document contains `"deleted": true`."""
    code: FailureCode | None = None
    """Fixed code of the reason in `error`."""
    left_out: tuple[Omission, ...] = ()
    """The account of omissions: content of the file that no passage contains."""
