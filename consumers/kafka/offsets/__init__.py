"""Where partitions begin and end, what is fetched next, and what may be committed."""
