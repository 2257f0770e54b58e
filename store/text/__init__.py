"""Language detection, and the BM25 terms of texts."""
