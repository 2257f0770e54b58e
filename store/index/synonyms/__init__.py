"""Which phrases are synonyms: the rule, the search for near pairs, and what a change of phrases does to the edges."""
