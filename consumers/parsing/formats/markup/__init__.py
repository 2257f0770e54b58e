"""Parsers for text formats with markup."""
