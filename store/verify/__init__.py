"""Verifies a store: derives everything from the tables again and reports the differences."""
