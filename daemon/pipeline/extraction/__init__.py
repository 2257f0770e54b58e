"""Extracts committed passages with the model: queue, journal, retries."""
