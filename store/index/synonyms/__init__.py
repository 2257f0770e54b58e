"""Synonym edges: the rule for pairs of phrases, the search for near pairs, and the changes when phrases come and go."""
