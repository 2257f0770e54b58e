"""The live index: all arrays, matrices, posting lists and vectors that queries need, in memory or mapped from files."""
