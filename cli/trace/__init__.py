"""Draws the trace of a question with several steps as one page."""
