"""The container image, run by podman: `make test-image`, which builds it and names it in HIPPOD_IMAGE.

Everything is podman's own, in a storage of the test's. Where this machine cannot do it (no podman, no right to start a
container) the tests are skipped with podman's words.
"""

import json
import os
import resource
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

ARCHIVE = os.environ.get("HIPPOD_IMAGE", "")
pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not ARCHIVE, reason="HIPPOD_IMAGE names no image: make test-image builds and tests one"),
    pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not here: apt-get install podman runc"),
]
HARDENED = ["--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges"]


class Podman:
    """podman with a storage of its own, and the runtime that works here."""

    def __init__(self, folder: Path) -> None:
        self._base = ["podman", "--root", folder / "root", "--runroot", folder / "run", "--cgroup-manager", "cgroupfs"]
        self._limits: list[str] = []
        for name, kind, usual in (
            ("nofile", resource.RLIMIT_NOFILE, 1 << 20),
            ("nproc", resource.RLIMIT_NPROC, 1 << 22),
        ):
            hard = resource.getrlimit(kind)[1]
            if 0 <= hard < usual:  # podman would raise it, which this machine may forbid
                self._limits.append(f"--ulimit={name}={min(hard, 4096)}:{min(hard, 4096)}")
        self.image = ""

    def load(self) -> None:
        self.image = self("load", "--quiet", "--input", ARCHIVE).strip().rpartition(" ")[2]

    def choose_runtime(self) -> None:
        said = []
        for runtime in ("crun", "runc"):
            done = self.try_(
                "--runtime", runtime, "run", "--rm", *self._limits, "--network=none", self.image, "--version"
            )
            if done.returncode == 0:
                self._base += ["--runtime", runtime]
                return
            said.append(f"{runtime}: {done.stderr.strip().splitlines()[-1]}")
        pytest.skip(f"no container can be started here: {'; '.join(said)}; try: apt-get install runc")

    def try_(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([*map(str, [*self._base, *arguments])], capture_output=True, text=True, timeout=300)

    def __call__(self, *arguments: object) -> str:
        done = self.try_(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    def start(self, name: str, *options: object) -> None:
        self("run", "--detach", "--name", name, *self._limits, *HARDENED, *options, self.image)

    def until_healthy(self, name: str) -> None:
        for _ in range(120):
            if self.try_("healthcheck", "run", name).returncode == 0:
                return
            time.sleep(0.5)
        pytest.fail(f"{name} is not healthy: {self.try_('logs', name).stderr}")


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    folder = tmp_path_factory.mktemp("podman")
    made = Podman(folder)
    try:
        made.load()
        made.choose_runtime()
        yield made
    finally:
        made.try_("rm", "--all", "--force", "--time", "30")
        made.try_("system", "reset", "--force")
        subprocess.run(["umount", "--lazy", folder / "root" / "overlay"], capture_output=True)


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    folder = tmp_path / "drive"
    folder.mkdir()
    tmp_path.chmod(0o755)
    for name, text in {
        "club.md": "# Rowing club\n\nTessa Quill founded the rowing club of Marlow Bend.\n",
        "tessa.md": "# Tessa Quill\n\nTessa Quill grew up in Harrow Ness.\n",
    }.items():
        (folder / name).write_text(text)
    folder.chmod(0o755)
    return folder


def test_image_declares_user_volume_entrypoint_and_health_check(podman: Podman) -> None:
    found = json.loads(podman("image", "inspect", podman.image))[0]
    config = found["Config"]
    assert config["User"] == "10001:10001"
    assert list(config["Volumes"]) == ["/var/lib/hippod"]
    assert config["Entrypoint"] == ["/opt/hippod/bin/hippod"]
    check = found.get("HealthCheck") or found["Healthcheck"]
    assert check["Test"][0] == "CMD"
    assert check["Test"][-1].endswith("healthcheck.py")


def test_container_works_without_privileges_network_and_writable_root(podman: Podman, drive: Path) -> None:
    podman.start("one", "--network=none", f"--volume={drive}:/drive:ro", "--volume=kept:/var/lib/hippod")
    podman.until_healthy("one")
    podman("exec", "one", "hippoctl", "wait")
    found = json.loads(
        podman("exec", "one", "hippoctl", "query", "Where did the founder of the rowing club grow up?", "--json")
    )
    assert [each["title"] for each in found["passages"][:2]] == ["Rowing club", "Tessa Quill"]

    assert podman("exec", "one", "id", "-u").strip() == "10001"
    for place in ("/x", "/etc/x", "/opt/hippod/x", "/tmp/x", "/drive/x"):
        assert podman.try_("exec", "one", "touch", place).returncode != 0, place
    status = podman("exec", "one", "cat", "/proc/1/status")
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status

    (drive / "roof.md").write_text("# Roof\n\nImke Dahl repaired the roof of the boathouse.\n")
    for _ in range(60):
        podman("exec", "one", "hippoctl", "wait")
        answer = json.loads(podman("exec", "one", "hippoctl", "query", "Who repaired the roof?", "-k", "1", "--json"))
        if answer["passages"][0]["title"] == "Roof":
            break
        time.sleep(0.5)
    else:
        pytest.fail("the new file was not seen")
    # A file that is handed in is kept in a temporary one meanwhile.
    podman(
        "exec", "one", "sh", "-c", "echo 'The oars came from Sandwick.' > oars.md && hippoctl add oars.md && rm oars.md"
    )

    podman("stop", "--time", "60", "one")
    assert podman("inspect", "one", "--format", "{{.State.ExitCode}}").strip() == "0"
    podman("rm", "one")
    podman.start("two", "--network=none", f"--volume={drive}:/drive:ro", "--volume=kept:/var/lib/hippod")
    podman.until_healthy("two")
    podman("exec", "two", "hippoctl", "wait")
    assert json.loads(podman("exec", "two", "hippoctl", "--json", "status"))["documents"] == 4
    podman("rm", "--force", "--time", "60", "two")


def test_over_tcp_the_page_and_the_api_want_the_token(podman: Podman, drive: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-the-test-0123456789abcdef")
    os.chown(token, 10001, 10001)
    token.chmod(0o600)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    podman.start(
        "tcp",
        "--network=host",
        f"--volume={drive}:/drive:ro",
        f"--volume={token}:/run/secrets/hippod-token:ro",
        f"--env=HIPPOD_API__TCP=127.0.0.1:{port}",
        "--env=HIPPOD_API__TOKEN_FILE=/run/secrets/hippod-token",
    )
    podman.until_healthy("tcp")
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        assert client.get("/v1/status").status_code == 401
        status = client.get("/v1/status", headers={"Authorization": f"Bearer {token.read_text()}"})
        assert status.json()["state"] == "ready"
        page = client.get("/", headers={"Accept": "text/html"}, follow_redirects=True)
        assert "<form" in page.text
    podman("rm", "--force", "--time", "60", "tcp")


def test_container_without_a_drive_does_not_start(podman: Podman) -> None:
    done = podman.try_("run", "--rm", "--network=none", *podman._limits, *HARDENED, podman.image)
    assert done.returncode == 2, done.stderr
    assert "/drive" in done.stdout + done.stderr
