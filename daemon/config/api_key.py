"""The model's key, which comes from the environment or a file, never from the configuration itself."""

import os
from pathlib import Path

from daemon.config.model_sections import LLM, ModelServer
from daemon.config_types.path_validators import ABSENT


def model_key(server: ModelServer) -> str | None:
    """Returns the key; None if none is configured. Raises ValueError, whose message contains no secret."""
    if server.api_key_env is not None:
        key = os.environ.get(server.api_key_env, "").strip()
        if not key:
            raise ValueError("the environment variable named there is not set, or empty; set it for hippod's process")
        return _usable(key)
    if server.api_key_file is not None:
        key = Path(server.api_key_file).read_text("utf-8", "replace").strip()
        if not key:
            raise ValueError(f"{server.api_key_file} is empty; write the key to it")
        if key.startswith(ABSENT):
            raise ValueError(f"systemd provides no key: {key.removeprefix(ABSENT)}")
        return _usable(key)
    return None


def _usable(key: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("the content is not a key: a key has no spaces, line ends or non-ASCII letters")
    return key


def key_problem(llm: LLM) -> str | None:
    """Returns one sentence about a missing or unusable key, with the configuration key first."""
    for name, server in (("llm", llm), ("llm.judge", llm.judge)):
        try:
            model_key(server)
        except (ValueError, OSError) as error:
            return f"{name}.{'api_key_env' if server.api_key_env is not None else 'api_key_file'}: {error}"
    return None
