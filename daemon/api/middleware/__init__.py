"""Middleware that every request passes before its route: connection, peer, rate limit, token, log."""
