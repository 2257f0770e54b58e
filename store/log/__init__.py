"""Atomic commits: the commit log, migrations and locks."""
