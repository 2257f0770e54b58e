"""hippoctl needs nothing of the server but the contract, so that it starts fast and installs anywhere."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

HEAVY = {"torch", "numpy", "scipy", "lancedb", "pyarrow", "fastapi", "starlette", "uvicorn", "sentence_transformers"}


def test_importing_hippoctl_loads_no_other_room_and_no_heavy_library() -> None:
    code = "import pkgutil, sys, cli\n"
    code += "for each in pkgutil.walk_packages(cli.__path__, 'cli.'): __import__(each.name)\n"
    code += "print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {name.partition(".")[0] for name in loaded} & (HEAVY | {"store", "consumers"}) == set()
    ours = {name for name in loaded if name.startswith("daemon")}
    assert all(name == "daemon" or name.startswith("daemon.contract") for name in ours)
