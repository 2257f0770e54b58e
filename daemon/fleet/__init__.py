"""hippod-worker: articles in, records out. Any number of workers share the reading of a topic."""
