"""Personalized PageRank: walks over the whole graph, forward push from few starts, and the scores of passages."""
