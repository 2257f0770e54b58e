"""Language and BM25 terms of texts."""
