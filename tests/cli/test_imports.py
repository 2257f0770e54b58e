"""hippoctl needs nothing of the server but the contract, so that it starts fast and installs anywhere."""

import subprocess
import sys

import pytest

from tests.cli.sample_answers import QUERY, STATUS
from tests.cli.scripted_daemon import Scripted, Shell

pytestmark = pytest.mark.process

HEAVY = {
    "openvino",
    "torch",
    "numpy",
    "scipy",
    "lancedb",
    "pyarrow",
    "fastapi",
    "starlette",
    "uvicorn",
    "sentence_transformers",
}


def test_importing_hippoctl_loads_no_server_code_and_no_heavy_library() -> None:
    code = "import pkgutil, sys, cli\n"
    code += "for each in pkgutil.walk_packages(cli.__path__, 'cli.'): __import__(each.name)\n"
    code += "print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {name.partition(".")[0] for name in loaded} & (HEAVY | {"store", "consumers"}) == set()
    ours = {name for name in loaded if name.startswith("daemon")}
    assert all(name == "daemon" or name.startswith("daemon.contract") for name in ours)


SLOW = {
    "asyncio",
    "httpx2",
    "importlib.metadata",
    "numpy",
    "pydantic",
    "pydantic_core",
    "rich.console",
}
"""What takes long to load, and no command that is typed often needs."""
RUN = """
import os, sys
from cli.main import main

def run(*arguments):
    sys.argv = ["hippoctl", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (arguments, end.code)
    loaded.append(sorted(sys.modules))

loaded = []
run("--help")
os.environ |= {"_HIPPOCTL_COMPLETE": "bash_complete", "COMP_WORDS": "hippoctl st", "COMP_CWORD": "1"}
run()
os.environ |= {"COMP_WORDS": "hippoctl query --mode d", "COMP_CWORD": "3"}
run()
del os.environ["_HIPPOCTL_COMPLETE"]
run("status")
run("--json", "status")
run("query", "who built the rain gauge?")
run("--version")
sys.stderr.write("\\n".join(" ".join(each) for each in loaded))
"""


def test_frequent_commands_load_no_slow_modules(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers |= {"GET /v1/status": STATUS, "POST /v1/query": QUERY}
    environ = hippoctl.environ | {"HIPPOD_CONFIG": ""}
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, env=environ, cwd=hippoctl.cwd)
    assert done.returncode == 0, done.stderr
    help_, names, options, status, status_json, query, version = (set(each.split()) for each in done.stderr.split("\n"))
    assert len(scripted.asked) == 3
    for listed in (help_, names):
        assert not {name for name in listed if name.startswith("cli.commands.")}
        assert listed & (SLOW | {"http.client", "ssl"}) == set()
    for loaded in (options, status, status_json, query):
        assert loaded & SLOW == set()
    assert version & (SLOW - {"importlib.metadata"}) == set()
    assert "http.client" not in options
    assert "memory.retrieval.modes" in query
