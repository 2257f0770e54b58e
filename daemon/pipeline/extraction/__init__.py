"""Passages that are committed and still to be read by the model: queued, journalled, tried again."""
