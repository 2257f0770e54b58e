"""Questions with the passages that answer them, and how modes compare on them."""
