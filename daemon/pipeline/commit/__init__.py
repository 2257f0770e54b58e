"""Changes that are ready: gathered into batches, completed, committed, reported."""
