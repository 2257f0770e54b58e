"""The HTTP API with JSON, served over a Unix socket and, if configured, over TCP.

`server.ApiServer` serves it. `service_protocols` declares the ports that the other packages of the daemon implement.
`event_hub.EventHub` distributes events to clients.
"""
