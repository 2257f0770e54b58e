"""Backups: to a folder, as links or copies (`local`), or incrementally to an object store (`remote`)."""
