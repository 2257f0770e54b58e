"""From an event to a commit: intake, reading, extraction, encoding, commit.

`intake` keeps what is to be done, the latest a key; `reading` turns it into documents; `committer` gathers what is ready
into batches, completes them, and commits; `pipeline` runs the three and is what the rest of the daemon talks to.
"""
