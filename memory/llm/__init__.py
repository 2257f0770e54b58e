"""Calls a language model behind an OpenAI-compatible server.

`client` asks for JSON, `chat_completion` sends one request, `error_classification` interprets a failed request, and `retry`
decides when to repeat it. `limiter` estimates how many calls the server accepts, `response_format` and `chat_completion` learn
what it supports, and `json_answers` parses its answers. In `memory`, only this package and `memory.encoder.openai` open
connections.
"""
