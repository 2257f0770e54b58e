"""Incoming work: added documents, stored on disk until they are committed, and the order of work."""
