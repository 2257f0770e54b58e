"""The routes of the socket API, a file for those that belong together."""
