"""The Kafka source: settings, the consumer, offsets, reading messages, dead letters.

This file imports nothing: the processes that read messages must not load the Kafka client.
"""
