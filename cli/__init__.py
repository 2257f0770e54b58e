"""hippoctl: asks a running hippod over its socket and prints what it answers."""
