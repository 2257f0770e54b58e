"""The JSON of the socket API and of `hippoctl --json`: the one part of the daemon that a client imports.

One file for each group of routes. Import the types from the files; this one exports nothing, so that a client loads only what
it needs.
"""
