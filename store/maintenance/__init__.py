"""Upkeep beside commits: compaction, retention, verification, backups, rebuilds."""
