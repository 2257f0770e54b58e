"""Opens packed files (DOCX, PPTX, XLSX, OpenDocument, EPUB) and checks their parts before a library reads them."""

import io
import zipfile
from typing import IO, Any

from lxml import etree

from consumers.failure_codes import FailureCode
from consumers.parsing.limits import Damaged, Limits, NotADocument, TooLarge, Unreadable
from consumers.parsing.xml_limits import XML_OPTIONS

_SMALL = 16 << 20


def open_package(data: bytes, limits: Limits) -> zipfile.ZipFile:
    """Opens the archive. Raises Unreadable if it is damaged, NotADocument if it exceeds the limits or needs a password.

    Checking the declared sizes suffices, because `zipfile` never reads more bytes of a member.
    """
    try:
        package = zipfile.ZipFile(io.BytesIO(data))
        members = package.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError) as error:
        raise Damaged(f"damaged or truncated: {error}; copy it again, or save it again") from error
    unpacked = sum(member.file_size for member in members)
    if unpacked > limits.unpacked_bytes:
        raise TooLarge(
            f"unpacks to {unpacked:,} bytes, more than the {limits.unpacked_bytes:,} allowed; exclude it if it is a zip "
            "bomb, or split it up"
        )
    if unpacked > _SMALL and unpacked > limits.unpacked_ratio * len(data):
        raise TooLarge(
            f"unpacks to {unpacked // max(len(data), 1):,} times its size, as zip bombs do; exclude it, or save it again"
        )
    if any(member.flag_bits & 1 for member in members):
        raise NotADocument("protected by a password; save it without one", FailureCode.PROTECTED)
    return package


def read_member(package: zipfile.ZipFile, name: str) -> bytes:
    try:
        return package.read(name)
    except KeyError:
        raise Damaged(f"damaged: its part {name!r} is missing; save it again") from None
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, ValueError) as error:
        raise Damaged(f"damaged: its part {name!r} cannot be unpacked ({error}); copy it again") from error


def read_again(file: IO[bytes], name: str) -> bytes:
    """Reads a member of an archive that was checked and closed."""
    with zipfile.ZipFile(file) as package:
        return read_member(package, name)


def check_members(package: zipfile.ZipFile) -> None:
    """Unpacks every part once, so that the error names a damaged part. The libraries' own errors do not name the part."""
    for member in package.infolist():
        try:
            with package.open(member) as part:
                while part.read(1 << 20):
                    pass
        except Exception as error:  # zlib, bz2, lzma and zipfile raise different errors; all of them mean damage
            raise Damaged(
                f"damaged: its part {member.filename!r} cannot be unpacked ({error}); copy it again"
            ) from error


def parse_xml(data: bytes, name: str) -> Any:
    """Returns the root element of the part `name`, without comments and with unresolved entities. Raises Unreadable for
    invalid XML."""
    parser = etree.XMLParser(remove_comments=True, remove_pis=True, **XML_OPTIONS)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise Damaged(f"damaged: its part {name!r} is not XML ({error}); save it again") from error


def optional_xml(package: zipfile.ZipFile, name: str) -> Any | None:
    """Returns the root element of an optional part; None if the part is missing or not XML."""
    data = read_member(package, name) if name in package.namelist() else b""
    try:
        return parse_xml(data, name) if data else None
    except Unreadable:
        return None
