"""Gathers finished changes into batches, encodes and commits the batches, and reports the result."""
