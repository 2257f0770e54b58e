"""An independent client: the MCP inspector's command line, from npm.

`npm install --prefix DIR @modelcontextprotocol/inspector`, then HIPPOD_MCP_INSPECTOR=DIR/node_modules/.bin/mcp-inspector, or
that folder on PATH. Its newest versions need Node 22, which npm also has (`npm install --prefix DIR node@22`).
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.mcp.sdk_client import TOKEN, command, url
from tests.e2e.real_hippod import Daemon, clean_environment

INSPECTOR = os.environ.get("HIPPOD_MCP_INSPECTOR") or shutil.which("mcp-inspector")

pytestmark = pytest.mark.skipif(
    INSPECTOR is None, reason="no MCP inspector: neither $HIPPOD_MCP_INSPECTOR nor mcp-inspector on PATH"
)


def inspect(memory: Daemon, transport: str, *arguments: str, code: int = 0) -> Any:
    """Returns its output for one request, each on its own connection."""
    assert INSPECTOR is not None
    beside = str(Path(INSPECTOR).absolute().parent)  # a node that was installed with it
    environment = clean_environment(memory.home)
    if transport == "http":
        target = [url(memory), "--transport", "http", "--header", f"Authorization: Bearer {TOKEN}"]
    else:
        target = command(memory, "--write")
    done = subprocess.run(
        [INSPECTOR, "--cli", *target, *arguments],
        env=environment | {"PATH": os.pathsep.join([beside, environment["PATH"]])},
        cwd=memory.home,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else done.stderr


def call(memory: Daemon, transport: str, tool: str, *arguments: str, code: int = 0) -> Any:
    return inspect(
        memory, transport, "--method", "tools/call", "--tool-name", tool, "--tool-arg", *arguments, code=code
    )


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_inspector_can_list_search_ask_add_and_forget(memory: Daemon, transport: str) -> None:
    tools = inspect(memory, transport, "--method", "tools/list")["tools"]
    assert [tool["name"] for tool in tools] == ["search", "ask", "show", "list", "read", "status", "add", "forget"]
    found = call(memory, transport, "search", "query=Who built the Quill lamp?", "k=1")
    assert "Sabine Rell built" in found["structuredContent"]["passages"][0]["text"]
    asked = call(memory, transport, "ask", "question=Who built the Quill lamp?")
    assert "It is so." in asked["structuredContent"]["answer"]
    added = call(memory, transport, "add", "text=Oona Vek tunes the Zither of Hask.")
    uri = added["structuredContent"]["uri"]
    assert uri in memory.documents()
    assert call(memory, transport, "forget", f"uris={json.dumps([uri])}")["structuredContent"]["removed"] == 1
    assert uri not in memory.documents()
    assert len(inspect(memory, transport, "--method", "resources/list")["resources"]) >= 100


def test_inspector_gets_an_error_that_names_the_missing_field(memory: Daemon) -> None:
    answer = call(memory, "http", "search", "k=1", code=5)
    assert answer["isError"] is True
    assert "query: field required" in answer["content"][0]["text"]
