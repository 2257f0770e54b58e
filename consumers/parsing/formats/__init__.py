"""The document formats, one file each."""
