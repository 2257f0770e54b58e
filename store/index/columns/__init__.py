"""Columns of texts and lists by row: mapped from a checkpoint's files, with later rows as Python objects.

A start reads none of the mapped data, and the system can drop pages that are not used.
"""
