"""The process and its surroundings: systemd, watchdog, signals, memory, schedule, reload."""
