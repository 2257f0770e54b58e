"""Triples by grammar in languages other than English: a tagger for each, one reader of clauses for most."""
