"""Retrieval: ranks passages for a query by modes, linking, seeds, recognition memory and Personalized PageRank."""
