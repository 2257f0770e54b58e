"""A language model behind an OpenAI-compatible server.

`client` asks for JSON, `chat` sends one request, `failures` says what a failed one means, `retry` when it is tried again,
`limiter` finds out how many calls the server takes, `response_format` and `max_tokens` what it can do, `json_answers` parses
its answers. In `memory`, only this package and
`memory.encoder.openai` open connections.
"""
