"""One booted Debian for all tests of this folder, with hippod's package installed: `make test-service`.

HIPPOD_TEST_PACKAGE names the package. If the variable is not set, or if no machine can be booted, the tests are skipped.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.systemd.booted.debian_package import rewrite
from tests.systemd.booted.machine import Machine, missing
from tests.systemd.booted.service import CONFIGURATION, Service

PACKAGE = os.environ.get("HIPPOD_TEST_PACKAGE", "")
FOLDER = Path(__file__).parents[3] / "build" / "booted"
NEWER = "0.2.0+newer"
OWN_SCRIPTS = ("hippod", "hippod-backfill", "hippod-worker", "hippoctl")


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    """A machine with Debian's own packages only, which are unpacked once and kept under build/. It stays until the next run."""
    if not PACKAGE:
        pytest.skip("HIPPOD_TEST_PACKAGE names no package: make test-service builds and tests one")
    if (reason := missing()) is not None:
        pytest.skip(reason)
    base, root = FOLDER / "debian", FOLDER / "machine"
    Machine(base).make()
    shutil.rmtree(root, ignore_errors=True)
    subprocess.run(["cp", "-a", "--reflink=auto", base, root], check=True)
    made = Machine(root)
    made.boot()
    try:
        yield made
    finally:
        made.power_off()


@pytest.fixture(scope="session")
def installed(machine: Machine) -> Machine:
    shutil.copy(PACKAGE, machine.root / "root/hippod.deb")
    done = machine.run("dpkg --force-unsafe-io -i /root/hippod.deb", timeout_s=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "does not run yet" in done.stdout
    shutil.copy(Path(__file__).parent / "load.py", machine.root / "root/load.py")
    return machine


@pytest.fixture(scope="session")
def newer(installed: Machine) -> str:
    """The path, inside the machine, of a package of a newer version: the same files with another version number."""
    before = installed.run("cat /opt/hippod/package/version").stdout.strip()

    def renamed(name: str, content: bytes) -> bytes:
        if name == "./control":
            return re.sub(rb"(?m)^Version: .*$", f"Version: {NEWER}".encode(), content)
        return content.replace(before.encode(), NEWER.encode())

    names = [
        "./control",
        *(f"./opt/hippod/package/{each}" for each in ("version", *(f"bin/{own}" for own in OWN_SCRIPTS))),
    ]
    rewrite(Path(PACKAGE), installed.root / "root/newer.deb", dict.fromkeys(names, renamed))
    return "/root/newer.deb"


@pytest.fixture
def service(installed: Machine, request: pytest.FixtureRequest) -> Iterator[Service]:
    """hippod.service, running and following /srv/notes; stopped and without drop-ins after the test."""
    made = Service(installed)
    made.start(getattr(request, "param", CONFIGURATION))
    yield made
    made.clear()
