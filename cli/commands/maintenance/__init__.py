"""Commands about the whole memory: backups, reading again, and losses to confirm."""
