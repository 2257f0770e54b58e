"""The path from an event to a commit: intake, parsing, extraction, encoding, commit. `pipeline` connects the parts."""
