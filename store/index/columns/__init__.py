"""Columns of texts and lists by row: older rows are mapped from a checkpoint's files, later rows are Python objects.

A start does not read the mapped data, and the system can drop pages that are not in use.
"""
