"""Checks a store: derives everything from the tables once more and names each difference."""
