"""Postings of words, and the BM25 scores computed from them."""
