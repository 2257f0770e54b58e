"""The folder on disk: its files and links, the rules that select the followed ones, and its mounted drives."""
