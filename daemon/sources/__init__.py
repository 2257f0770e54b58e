"""Where documents come from, as the daemon runs it: one file or folder a kind, and `registry`, which lists the kinds."""
