"""OpenIE by a language model: over a server, or by vLLM in this process."""
