"""Vectors of passages, phrases and triples by row, and their one-byte codes."""
