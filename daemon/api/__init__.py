"""The socket API: HTTP with JSON over a Unix socket, and over TCP where configured.

`server.ApiServer` serves; `ports` says what it needs of the rest of the daemon; `event_hub.EventHub` brings it events.
"""
