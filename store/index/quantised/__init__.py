"""A fast preliminary search of a very large matrix of vectors: small codes in memory, and a sample of the rows."""
