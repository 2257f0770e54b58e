"""Incoming work: added documents, kept on disk until they are committed, and the order in which work is taken."""
