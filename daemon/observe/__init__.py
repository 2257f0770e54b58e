"""Logs, metrics, and the memory that the process uses."""
