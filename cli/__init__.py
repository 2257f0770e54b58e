"""hippoctl: sends requests to a running hippod over its socket and prints the answers."""
