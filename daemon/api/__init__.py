"""The socket API: HTTP with JSON over a Unix socket, and over TCP where configured.

`server.ApiServer` is what `daemon.main` starts; `ports` is what it must be given; `hub.EventHub` carries events to it.
"""
