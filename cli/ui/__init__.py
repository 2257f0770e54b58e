"""The page for those who have the Unix socket alone: a server on the loopback interface, for as long as the command runs."""
