"""Scopes: indexes of some of the documents, derived from the whole memory and equal to a new memory of these documents."""
