"""The HTTP API with JSON, served over a Unix socket and, if configured, over TCP.

`server.ApiServer` serves it. `ports` names the services that the routes call.
`event_hub.EventHub` distributes events to clients.
"""
