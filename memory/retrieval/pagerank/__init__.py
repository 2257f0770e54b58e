"""Personalized PageRank: walks over the whole graph, pushes from a few starts, and the scores of passages."""
