"""From an event to a commit: intake, reading, extraction, encoding, commit. `pipeline` puts the parts together."""
