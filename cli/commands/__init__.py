"""The commands, a file for those that belong together."""
