"""The sources of documents as the daemon runs them: one file or folder per kind, and `registry`, which lists the kinds."""
