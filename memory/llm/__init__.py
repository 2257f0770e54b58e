"""A language model behind an OpenAI-compatible server.

`client` asks for JSON, `chat` sends one request, `failures` says what a failed one means, `retry` when it is tried again,
`limiter` finds out how much the server takes, `response_format` and `max_tokens` what it can do, `json_answers` reads what
came back. Nothing else in `memory` opens a connection, but for `memory.encoder.openai`.
"""
