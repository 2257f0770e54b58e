"""What travels out of the consumers: events from sources, and documents split into passages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.omissions import Omission

Triple = tuple[str, str, str]

INTERNAL_KEYS = frozenset(("kafka", "record", "left_out"))
"""Keys of a document's metadata that hippod alone writes: where a message, or a record, came from, and what the store keeps
there of the account of omissions."""

READER_VERSION = 5
"""Raised whenever reading gives something else for the same file: another parser, format or way to split. Files that an earlier
version has read are read again then; passages that stay the same cost nothing more."""

EXCLUSIONS_VERSION = 2
"""Raised with every row that is added to `consumers.folder.tree.default_exclusions`. Documents of files that were read under an
earlier version are not forgotten because of a newer row before somebody confirms it."""

EMPTY = "empty"
"""Says in a file's position that the memory has no document of the file and needs none: the file gave none, or whoever may
remove them did. Without it, a file whose documents are missing is read again at the next start."""

Stamp = tuple[int, int, int]
"""(size, mtime in ns, inode)."""


def content_digest(hexadecimal: str, size: int, max_bytes: int | None) -> str:
    """The digest of a file of `size` bytes of which at most `max_bytes` are read; `hexadecimal` is their BLAKE2b-128. That of a
    beginning names its length, as the same file has other documents under another limit."""
    return hexadecimal if max_bytes is None or size <= max_bytes else f"{hexadecimal}:{max_bytes}"


def stated_metadata(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata that a document states itself. A key that hippod alone writes gets a "_" at its end: `kafka_`, `record_`,
    `left_out_`.

    Whatever reads documents passes what it found through this function before hippod adds anything.
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
    """What a file looked like when it was read. Equal fingerprints mean that it need not be read again.

    `digest` is that of the content (`content_digest`); it decides when size or mtime changed but the content may not have.
    """

    size: int
    mtime_ns: int
    inode: int
    digest: str | None = None
    exclusions: int = field(default=EXCLUSIONS_VERSION, compare=False)
    """The version of the default exclusions under which the file was read."""

    @property
    def stamp(self) -> Stamp:
        """What can be seen of a file without reading it."""
        return self.size, self.mtime_ns, self.inode

    def reads_as_far(self, max_bytes: int) -> bool:
        """Whether the file would be read as far again under this limit."""
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
        """A stored position. One of another reader has no digest, as the same file reads otherwise now."""
        digest = value.get("digest") if value.get("reader") == READER_VERSION else None
        exclusions = int(value.get("exclusions", 1))
        return cls(int(value["size"]), int(value["mtime_ns"]), int(value["inode"]), digest, exclusions)


@dataclass(frozen=True, slots=True)
class FileChanged:
    """A followed file is new or has changed, and has settled."""

    uri: str
    path: bytes
    """The path as the system gave it: names need not be UTF-8."""
    source: str
    fingerprint: Fingerprint
    scanned: bool = field(default=False, compare=False)
    """Found by a scan that found many differences: it may wait, unlike a file that was saved just now."""


@dataclass(frozen=True, slots=True)
class FileMoved:
    """A followed file has another name and the same content: its passages stay."""

    old_uri: str
    uri: str
    path: bytes
    source: str
    fingerprint: Fingerprint
    scanned: bool = field(default=False, compare=False)
    """As of `FileChanged`."""


@dataclass(frozen=True, slots=True)
class FileRemoved:
    """A followed file is gone, or no longer followed."""

    uri: str
    source: str


@dataclass(frozen=True, slots=True)
class FileRefused:
    """A file that is not read at all (no permission, not a regular file, a link): why, and what to do."""

    uri: str
    source: str
    reason: str
    failed: bool
    """True: worth another try later (`failed`); false: as configured (`skipped`)."""
    code: FailureCode
    fingerprint: Fingerprint | None = None
    scanned: bool = field(default=False, compare=False)
    """As of `FileChanged`."""


FileEvent = FileChanged | FileMoved | FileRemoved | FileRefused


@dataclass(frozen=True, slots=True)
class Link:
    """A link from a passage, as its author wrote it. Only the store can say which document it leads to.

    `target`: a relative path, a page's name, or an address, without the fragment. `heading`: the fragment: the name of a
    heading, or `^id` for a block of Obsidian. `text`: the words that the reader sees.
    """

    target: str
    heading: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document's text: the unit of retrieval.

    `title` is the document's title, with the section's heading after it where there is one; it is part of what is
    embedded and of the passage's identity. `location` says where the passage begins: any of `page`, `heading`, `line`,
    `sheet`, `row` (counted from 1).
    """

    title: str
    text: str
    location: Mapping[str, Any] = field(default_factory=dict)
    triples: tuple[Triple, ...] | None = None
    links: tuple[Link, ...] = ()
    """The links in the text, and those in the headings above it."""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A parsed document. `error` is set instead of passages where it could not be read; `skipped` says it was on purpose."""

    uri: str
    title: str = ""
    passages: tuple[Passage, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    modified_at: float | None = None
    error: str | None = None
    skipped: bool = False
    deleted: bool = False
    """A JSON document that says `"deleted": true`."""
    code: FailureCode | None = None
    """Why there is an `error`, in one word."""
    left_out: tuple[Omission, ...] = ()
    """The account of omissions: content of the file that is in no passage."""
