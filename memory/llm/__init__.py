"""A language model behind an OpenAI-compatible server: how it is asked, how often, and what its answers are worth.

`client` asks and tries again, `limiter` finds out how much the server takes, `formats` which way of asking for JSON it
knows, `answers` reads what came back. The one place in `memory` that opens a connection.
"""
