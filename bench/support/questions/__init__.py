"""Questions with the passages that answer them, and comparisons of modes on them."""
