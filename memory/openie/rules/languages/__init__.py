"""Names in languages other than English: a tagger for each of some languages."""
