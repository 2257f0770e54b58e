"""Maintenance concurrent with commits: compaction, retention, folding, rebuilds, recall of synonyms."""
