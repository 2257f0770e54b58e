"""The trace of a question of several steps as one page."""
