"""A scope is a memory of its own: what a fresh memory of some of the documents would be, made from the memory of all."""
