"""OpenIE by a language model: on a server, or with vLLM in this process."""
