"""What a very large matrix of vectors is looked through with first: small codes in memory, and a sample of the rows."""
