"""What of a text BM25 counts: its language, and its terms."""
