"""The daemon's sources of documents: a file or folder for each kind of source, and `registry`, which lists the kinds."""
