"""Data classes of a deep question, serialisable as JSON: memory points, inquiries, events, and the trace of all steps.

They are immutable and contain texts and passage ids, never rows of a snapshot, so a point stays valid after its commit.
"""
