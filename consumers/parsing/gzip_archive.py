"""Unpacks gzip files within limits."""

import zlib

from consumers.parsing.limits import Damaged, Limits, TooLarge

_SMALL = 16 << 20
_GZIP_WINDOW = 31
"""zlib's `wbits` for a gzip header and the largest window."""


def unpack_gzip(data: bytes, limits: Limits) -> bytes:
    """Returns the unpacked content of all members. Raises NotADocument if it exceeds the limits, Unreadable if it is
    damaged."""
    max_bytes = min(limits.unpacked_bytes, max(_SMALL, limits.unpacked_ratio * len(data)))
    unpacked = bytearray()
    rest = data
    while rest[:2] == b"\x1f\x8b":
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            unpacked += member.decompress(rest, max_bytes + 1 - len(unpacked))
        except zlib.error as error:
            raise Damaged(f"damaged: it cannot be unpacked ({error}); copy it again") from error
        if len(unpacked) > max_bytes:
            raise TooLarge(
                f"unpacks to more than {max_bytes:,} bytes, the most for a file of its size; exclude it if it is a bomb, "
                "or unpack it into the folder"
            )
        if not member.eof:
            raise Damaged("cut short: its end is missing; copy it again")
        rest = member.unused_data.lstrip(b"\0")
    return bytes(unpacked)
