"""The client side of a request to the daemon over its socket."""
