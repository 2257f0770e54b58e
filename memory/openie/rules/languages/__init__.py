"""Finds names in languages other than English, with a tagger for each of some languages."""
