"""Runs llama.cpp's server as `examples/llama` does; `make test-servers` installs it into an environment of its own."""

import os
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.real_hippod import until

PYTHON = os.environ.get("HIPPOD_SERVERS_PYTHON")
"""Python of the environment with the model servers: xllamacpp, and `transformers serve`."""
SERVE = Path(__file__).parents[4] / "examples" / "llama" / "serve.py"
needs_llama_cpp = pytest.mark.skipif(PYTHON is None, reason="xllamacpp is not installed: make test-servers")


@contextmanager
def llama_server(model: Path, log_file: Path, context: int) -> Iterator[str]:
    """Yields the address of a server for one GGUF file, once it answers.

    It computes with one thread: on a busy machine, two would mostly wait for each other.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {"model": model, "port": port, "context": context, "threads": 1}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    with log_file.open("w") as log:
        server = subprocess.Popen([str(PYTHON), str(SERVE), *words], stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}/v1"

    def answers() -> bool:
        assert server.poll() is None, log_file.read_text()
        try:
            # `/v1/models` answers before the model is loaded.
            return bool(urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).status == 200)
        except OSError:
            return False

    try:
        until(answers, "the server has loaded its model")
        yield address
    finally:
        server.kill()
        server.wait()
