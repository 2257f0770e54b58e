"""The JSON types of the HTTP API and of `hippoctl --json`: the only part of the daemon that clients import.

There is one module for each group of routes. Import the types from these modules; this one exports nothing, so that a client
loads only what it needs.
"""
