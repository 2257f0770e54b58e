"""Scopes: indexes of some of the documents, equal to a fresh memory of these documents, derived from the whole memory."""
