"""hippod-backfill: parses many documents on a Ray cluster, and writes files of records."""
