"""Extracts triples from committed passages with the model: queue, journal, retries."""
