"""Upkeep beside commits: compaction, retention, folding, rebuilds, the recall of synonyms."""
