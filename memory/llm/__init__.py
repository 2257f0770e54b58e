"""Calls a language model behind an OpenAI-compatible server.

`client` asks for JSON, `chat_completion` sends one request, `error_classification` interprets a failed request, and `retry`
decides when it is repeated. `limiter` estimates how many calls the server accepts, `response_format` and `max_tokens` learn
what it supports, and `json_answers` parses its answers. In `memory`, only this package and `memory.encoder.openai` open
connections.
"""
