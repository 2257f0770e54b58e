"""Followed Kafka topics: from messages to documents in the pipeline."""
