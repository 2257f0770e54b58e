"""Followed Kafka topics: turns messages into documents for the pipeline."""
