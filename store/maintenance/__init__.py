"""Maintenance that runs concurrently with commits: compaction, retention, folding, rebuilding, measuring synonym recall."""
