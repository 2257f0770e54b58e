"""The page for users with only the Unix socket: a server on the loopback interface that runs as long as the command."""
