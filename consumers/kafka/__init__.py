"""The Kafka source: settings, the consumer, offsets, message decoding and dead letters.

This file imports nothing, because the processes that decode messages must not load the Kafka client.
"""
