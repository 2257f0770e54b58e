"""Retrieval: from a query to ranked passages by modes, linking, seeds, recognition memory and Personalized PageRank."""
