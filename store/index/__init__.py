"""The memory in memory: arrays, graph, vectors, postings and synonym search."""
