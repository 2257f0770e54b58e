"""The commands; each file contains related commands."""
