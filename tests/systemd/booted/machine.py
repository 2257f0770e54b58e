"""A booted Debian with a real systemd, in a container: for what only a real service manager shows.

It needs root, Debian's mmdebstrap (to make the file system once) and systemd-container (to boot it). The network is this
machine's. Commands run inside as root.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

PACKAGES = "systemd,systemd-sysv,dbus,python3,curl,procps"
HIERARCHIES = ("systemd", "unified", "memory", "cpu", "cpuacct", "pids", "devices", "blkio")
"""Of control groups, version 1: units inside can be limited only where these are writable."""
CPU_SHARES = 4096
"""Of a processor, where 1024 is a process's. The group as a whole would have no more than one process outside of it, although
four or five want to run inside."""
UNWANTED_TIMERS = ("apt-daily", "apt-daily-upgrade", "fstrim", "e2scrub_all", "dpkg-db-backup")
INIT = """#!/bin/sh
for c in memory cpu cpuacct pids devices blkio; do
    mount -o remount,bind,rw,nosuid,nodev,noexec /sys/fs/cgroup/$c 2>/dev/null
done
exec /lib/systemd/systemd
"""
BOOT_PATIENCE_S = 60.0
ENVIRONMENT = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "SYSTEMD_PAGER=cat"]


def missing() -> str | None:
    """Why no machine can be booted here; None if one can."""
    if os.geteuid() != 0:
        return "a machine is booted by root alone"
    absent = [each for each in ("mmdebstrap", "systemd-nspawn", "nsenter") if shutil.which(each) is None]
    if absent:
        return f"{', '.join(absent)} not here: apt-get install mmdebstrap systemd-container"
    return None


class Machine:
    """`root` is its file system, which is made where there is none (a minute, 310 MB) and stays."""

    def __init__(self, root: Path, release: str = "bookworm") -> None:
        self.root = root.absolute()
        self._release = release
        self._container: subprocess.Popen[bytes] | None = None
        self._init = 0

    def make(self) -> None:
        if not (self.root / "usr").is_dir():
            self.root.parent.mkdir(parents=True, exist_ok=True)
            options = ["--quiet", "--variant=important", f"--include={PACKAGES}"]
            subprocess.run(["mmdebstrap", *options, self._release, self.root], check=True)
        for timer in UNWANTED_TIMERS:
            unit = self.root / f"etc/systemd/system/{timer}.timer"
            if not unit.is_symlink():
                unit.symlink_to("/dev/null")
        init = self.root / "sbin/boot-init"
        init.write_text(INIT)
        init.chmod(0o755)

    def boot(self) -> None:
        """Returns once its systemd has started all it starts."""
        self.make()
        name = f"hippod-test-{os.getpid()}"
        groups = [Path("/sys/fs/cgroup") / each for each in HIERARCHIES]
        self._groups = [each / name for each in groups if (each / "cgroup.procs").exists()]

        def enter_groups() -> None:
            for group in self._groups:
                try:
                    group.mkdir(exist_ok=True)
                    if (shares := group / "cpu.shares").exists():
                        shares.write_text(str(CPU_SHARES))
                    (group / "cgroup.procs").write_text(str(os.getpid()))
                except OSError:  # a hierarchy of this machine's that takes none: its limits have no effect inside
                    continue
            os.setsid()

        # Without the filter, IPAddressAllow= and IPAddressDeny= of units have no effect.
        options = ["-q", "--register=no", "--keep-unit", "--console=pipe", "--kill-signal=SIGRTMIN+3"]
        with Path(f"{self.root}.console").open("wb") as console:
            self._container = subprocess.Popen(
                ["systemd-nspawn", *options, "--system-call-filter=bpf", "-D", self.root, "/sbin/boot-init"],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                preexec_fn=enter_groups,
            )
        self._until(self._found_init, "systemd is process 1")
        self._until(
            lambda: self.run("systemctl is-system-running").stdout.strip() in ("running", "degraded"), "it is up"
        )

    def _found_init(self) -> bool:
        assert self._container is not None
        done = subprocess.run(["pgrep", "-P", str(self._container.pid)], capture_output=True, text=True)
        for pid in done.stdout.split():
            if Path(f"/proc/{pid}/comm").read_text().strip() == "systemd":
                self._init = int(pid)
                return True
        assert self._container.poll() is None, Path(f"{self.root}.console").read_text()
        return False

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + BOOT_PATIENCE_S
        while not reached():
            assert time.monotonic() < deadline, f"it never came to: {what}"
            time.sleep(0.1)

    def command(self, *command: str) -> list[str]:
        """What runs `command` inside, for whoever starts processes by itself."""
        entered = ["nsenter", "-t", str(self._init), "-m", "-u", "-i", "-n", "-p", "-C", "--root", "--wdns=/root"]
        return [*entered, "--", "env", "-i", *ENVIRONMENT, *command]

    def run(self, script: str, timeout_s: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Runs a shell script inside; its output is text."""
        return subprocess.run(
            self.command("sh", "-c", script),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
        )

    def power_off(self) -> None:
        if self._container is not None:
            self.run("systemctl poweroff")
            self._container.wait(BOOT_PATIENCE_S)
            self._container = None
        for group in self._groups:
            for folder, _, _ in os.walk(group, topdown=False):
                try:
                    Path(folder).rmdir()
                except OSError:
                    continue
