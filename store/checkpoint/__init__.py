"""Writes the index down and starts from it."""
