"""Logs, metrics, and what the service manager is shown."""
