"""A deep question as plain data: memory points, inquiries, events, and the trace of all steps, which JSON can hold.

Everything here is immutable and names texts and passage ids, never rows of a snapshot: a point outlives its commit.
"""
