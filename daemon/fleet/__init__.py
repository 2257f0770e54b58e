"""hippod-worker: turns messages of articles into records. Any number of workers share the messages of a topic."""
