"""The live index: every array, matrix, posting list and vector that a query needs, in memory or mapped from files."""
