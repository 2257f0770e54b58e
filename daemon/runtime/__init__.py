"""Integrates the process with its environment: systemd, watchdog, signals, memory, schedule, reload."""
