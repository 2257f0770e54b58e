"""Synonym edges: the rule for pairs of phrases, the search for near pairs, and the edges that a change of phrases changes."""
