"""Work that comes in: documents handed in, on disk until they are committed, and the order in which all is taken."""
