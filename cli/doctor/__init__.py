"""What `doctor` looks at: this machine, the configuration, the socket, and what the daemon says of itself."""
