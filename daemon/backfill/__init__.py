"""hippod-backfill: a pile of documents read on a Ray cluster, and written as files of records."""
