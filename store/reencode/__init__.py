"""Replaces the store's vectors by vectors of another encoder."""
