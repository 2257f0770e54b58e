"""Postings of words, and BM25 scores from them."""
