"""Telegrams of a tide gauge.

A telegram has eleven bytes. The last one is the checksum, which Oda Lund chose to be a cyclic redundancy check.
"""

POLYNOMIAL = 0x31


def checksum(octets: bytes) -> int:
    """The check byte of a telegram: it is computed from the ten bytes before it, the highest bit first."""
    value = 0xFF
    for octet in octets:
        value ^= octet
        for _ in range(8):
            value = (value << 1 ^ POLYNOMIAL) & 0xFF if value & 0x80 else value << 1 & 0xFF
    return value
