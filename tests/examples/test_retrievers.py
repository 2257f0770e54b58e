"""The retrievers of examples/ find what hippod finds, in an environment of their own: `make test-integrations`."""

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.e2e.real_hippod import Daemon

PYTHON = os.environ.get("HIPPOD_INTEGRATIONS_PYTHON", "")
TOKEN = "a-secret-of-the-tests"
QUESTION = "Who built the rain gauge?"

pytestmark = [
    pytest.mark.daemon,
    pytest.mark.skipif(not PYTHON, reason="needs langchain-core and llama-index-core: make test-integrations"),
]


@pytest.mark.parametrize("framework", ["langchain", "llamaindex"])
def test_retriever_returns_the_passages_of_a_query(framework: str, tmp_path: Path) -> None:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{chosen.getsockname()[1]}"
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    with Daemon(tmp_path, api={"tcp": address, "token_file": str(tmp_path / "token")}) as daemon:
        daemon.write("gauge.md", "# The rain gauge\n\nEmil Strand built the rain gauge in 1974.\n")
        daemon.write("boat.md", "# The boat\n\nOdile Brandt owns the skiff Sorrel.\n")
        daemon.write("cave.md", "# The cave\n\nThimble Cave is full of bats.\n")
        daemon.wait()
        there = [[each["id"], each["text"], each["document"]] for each in daemon.query(QUESTION, k=2)]
        script = Path(__file__).with_name("retriever_run.py")
        connection = [str(daemon.socket), f"http://{address}", TOKEN]
        command = [PYTHON, str(script), framework, *connection, QUESTION]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    assert len(there) == 2
    assert json.loads(done.stdout.splitlines()[-1]) == [there, there]
