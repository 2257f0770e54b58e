"""The commands, with related ones in one file."""
