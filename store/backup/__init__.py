"""Backups: to a folder of links or copies (`local`), or incrementally to an object store (`remote`)."""
