"""Linking: from a query to the triples, phrases and titles that it is about, and from these to the seeds of a walk."""
