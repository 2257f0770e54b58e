"""Explains why a passage was found, and extracts the part of the graph around a query."""
