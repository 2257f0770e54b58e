"""Replaces the store's vectors by those of another encoder."""
