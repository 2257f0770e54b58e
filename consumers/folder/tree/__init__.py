"""The folder on disk: its files and links, the rules that select followed files, and its mounted drives."""
