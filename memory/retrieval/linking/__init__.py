"""Linking: finds the triples, phrases and titles that a query is about, and derives the seeds of the walk."""
