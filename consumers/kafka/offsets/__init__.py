"""Offsets: the beginning and end of partitions, fetch positions, and offsets that may be committed."""
