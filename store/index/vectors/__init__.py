"""Vectors of passages, phrases and triples by row, and their codes."""
