"""Parses sentences into tokens, tags, chunks and clauses, to find subject, predicate and object."""
