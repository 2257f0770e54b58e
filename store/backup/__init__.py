"""Backups: a folder of links (`local`), or what is new of a commit in an object store (`remote`)."""
