"""Parsers for the documents of office programs."""
