"""Synonym edges: the rule for pairs of phrases, the search for near pairs, and the edges that change when phrases are added or
removed."""
