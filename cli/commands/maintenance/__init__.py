"""Commands about the whole memory: backup, repeated extraction, and confirmation of removals."""
