"""Gathers finished changes into batches, completes and commits these, and reports the result."""
