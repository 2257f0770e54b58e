"""Following Kafka topics: settings, what a message means, where each partition stands, the consumer, the dead letters.

Nothing is imported here: the processes that read messages must not load the Kafka client.
"""
