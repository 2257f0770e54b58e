"""Followed folders on file systems other than a local disk, and files saved in unusual ways.

The folder's watcher runs without a daemon; each time runs from a change until the watcher reports the complete change. Late or
missing reports on a drive only appear in the figures. A final report that differs from the disk, or a save that is reported as
a removal, is a violation.

Runs as root, on Linux. File systems and programs that this machine lacks are omitted and named.
"""

import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from bench.support.tables import table
from consumers.folder import FolderSettings, FolderWatcher, file_uri
from consumers.types import FileChanged, FileEvent, FileMoved, FileRefused, FileRemoved, Fingerprint
from daemon.config_types.mounts import MOUNTS
from daemon.sources.folder_checks import drive

CHANGES = 10
UNSEEN_AFTER_S = 30.0
CACHED_AT_MOST_S = 60.0
GIT_FILES = 10_000
PATIENCE_S = 300.0
SFTP_SERVER = Path("/usr/lib/openssh/sftp-server")


def digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


class Following:
    """A watcher, and its reports so far."""

    def __init__(self, root: Path, polling: bool = False) -> None:
        self.root = root
        self.positions: dict[str, Fingerprint] = {}
        self.removed: list[str] = []
        self.events = 0
        self.watcher = FolderWatcher(
            FolderSettings(root, polling=polling), {}, self._emit, lambda _state: None, self._touch
        )

    def _emit(self, event: FileEvent) -> None:
        self.events += 1
        match event:
            case FileChanged():
                self.positions[event.uri] = event.fingerprint
            case FileMoved():
                self.positions.pop(event.old_uri, None)
                self.positions[event.uri] = event.fingerprint
            case FileRemoved():
                self.positions.pop(event.uri, None)
                self.removed.append(event.uri)
            case FileRefused():
                self.positions.pop(event.uri, None)

    def _touch(self, uri: str, fingerprint: Fingerprint) -> None:
        self.positions[uri] = fingerprint

    def __enter__(self) -> "Following":
        self.watcher.start()
        self.rescan()
        return self

    def __exit__(self, *_: object) -> None:
        self.watcher.stop()

    def rescan(self) -> None:
        finished: Future[bool] = Future()
        self.watcher.rescan(finished.set_result)
        finished.result(PATIENCE_S)

    def has(self, name: str, content: bytes) -> bool:
        position = self.positions.get(file_uri(os.fsencode(self.root / name)))
        return position is not None and position.digest == digest(content)

    def seen_after(self, reached: Callable[[], bool], within_s: float) -> float | None:
        began = time.monotonic()
        while not reached():
            if time.monotonic() - began > within_s:
                return None
            time.sleep(0.005)
        return time.monotonic() - began

    def agrees(self) -> bool:
        """Whether the reports match the contents of the followed files."""
        found = {
            file_uri(os.fsencode(path)): digest(path.read_bytes())
            for path in self.root.rglob("*")
            if path.is_file() and not any(part.startswith((".", "~$")) for part in path.relative_to(self.root).parts)
        }
        return found == {uri: position.digest for uri, position in self.positions.items()}


# File systems.


def command(*words: str | Path) -> None:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise OSError((done.stderr or done.stdout).strip().splitlines()[-1] if done.stderr or done.stdout else "failed")


@contextmanager
def local(folder: Path) -> Iterator[tuple[Path, Path | None]]:
    yield folder / "local", None


@contextmanager
def bindfs(folder: Path) -> Iterator[tuple[Path, Path | None]]:
    command("bindfs", folder / "beneath", folder / "mount")
    try:
        yield folder / "mount", folder / "beneath"
    finally:
        command("umount", folder / "mount")


@contextmanager
def sshfs(folder: Path) -> Iterator[tuple[Path, Path | None]]:
    """Mounts over a pipe to the SFTP server, without an SSH connection."""
    server = subprocess.Popen([SFTP_SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    options = ["-f", "-o", "passive"]
    client = subprocess.Popen(
        ["sshfs", f"x:{folder / 'beneath'}", folder / "mount", *options], stdin=server.stdout, stdout=server.stdin
    )
    try:
        _until(lambda: os.path.ismount(folder / "mount"), client, "sshfs does not mount")
        yield folder / "mount", folder / "beneath"
    finally:
        subprocess.run(["umount", folder / "mount"], capture_output=True)
        for each in (client, server):
            each.terminate()
            each.wait()


SAMBA = """[global]
server role = standalone server
map to guest = bad user
guest account = root
interfaces = 127.0.0.1
bind interfaces only = yes
smb ports = {port}
disable netbios = yes
lock directory = {state}
state directory = {state}
cache directory = {state}
pid directory = {state}
private dir = {state}
ncalrpc dir = {state}/ncalrpc
load printers = no
[share]
path = {share}
guest ok = yes
read only = no
"""


@contextmanager
def smb(folder: Path) -> Iterator[tuple[Path, Path | None]]:
    """Mounts a share of Samba's server with rclone, because the kernel may have no client. rclone caches listings for 5 s."""
    for program in ("smbd", "rclone"):
        if shutil.which(program) is None:
            raise OSError(f"{program} is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    state, settings = folder / "state", folder / "smb.conf"
    state.mkdir(mode=0o700)
    settings.write_text(SAMBA.format(port=port, state=state, share=folder / "beneath"))
    quiet: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    words = ["smbd", "--foreground", "--no-process-group", "--debug-stdout", "-s", str(settings)]
    server = subprocess.Popen(words, start_new_session=True, **quiet)  # smbd kills its process group when it ends
    try:
        _until(lambda: _listens(port), server, "smbd does not listen")
        password = subprocess.run(["rclone", "obscure", "x"], capture_output=True, text=True, check=True).stdout.strip()
        share = f":smb,host=127.0.0.1,port={port},user=nobody-there,pass='{password}':share"
        options = ["--vfs-cache-mode", "writes", "--cache-dir", str(folder / "cache"), "--dir-cache-time", "5s"]
        client = subprocess.Popen(["rclone", "mount", share, str(folder / "mount"), *options], **quiet)
        try:
            _until(lambda: os.path.ismount(folder / "mount"), client, "rclone does not mount")
            yield folder / "mount", folder / "beneath"
        finally:
            subprocess.run(["umount", folder / "mount"], capture_output=True)
            client.terminate()
            client.wait()
    finally:
        server.terminate()
        server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def _until(reached: Callable[[], bool], process: subprocess.Popen[bytes], failed: str) -> None:
    end = time.monotonic() + 30
    while not reached():
        if process.poll() is not None or time.monotonic() > end:
            raise OSError(failed)
        time.sleep(0.05)


@contextmanager
def overlayfs(folder: Path) -> Iterator[tuple[Path, Path | None]]:
    """Upper and work folder are on a tmpfs, because an overlay on an overlay is refused."""
    command("mount", "-t", "tmpfs", "tmpfs", folder / "beneath")
    try:
        for name in ("lower", "upper", "work"):
            (folder / "beneath" / name).mkdir()
        parts = ",".join(
            f"{key}={folder / 'beneath' / name}"
            for key, name in (("lowerdir", "lower"), ("upperdir", "upper"), ("workdir", "work"))
        )
        command("mount", "-t", "overlay", "overlay", "-o", parts, folder / "mount")
        try:
            yield folder / "mount", folder / "beneath" / "lower"
        finally:
            command("umount", folder / "mount")
    finally:
        command("umount", folder / "beneath")


DRIVES = {"local disk": local, "overlayfs": overlayfs, "bindfs": bindfs, "sshfs": sshfs, "SMB (samba, rclone)": smb}


def drives(results: dict[str, Any]) -> str:
    kernel = Path("/proc/filesystems").read_text()
    absent = [name for name in ("nfs", "cifs") if f"\t{name}\n" not in kernel]
    rows = [(name, *"––––", f"this machine's kernel has no {name}") for name in absent]
    for name, mounted in DRIVES.items():
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            for each in ("local", "beneath", "mount"):
                (folder / each).mkdir()
            try:
                with mounted(folder) as (root, beneath):
                    rows.append(_drive(name, root, beneath, results))
            except OSError as error:
                rows.append((name, *"––––", f"not mounted here: {error}"))
    written = ("written through it, s", "written beneath it, s", "polled: through it, s", "polled: beneath it, s")
    return table(("drive", *written, "`doctor`"), rows)


def _drive(name: str, root: Path, beneath: Path | None, results: dict[str, Any]) -> tuple[str, ...]:
    cells: list[str] = []
    measured: dict[str, list[float | None] | None] = {}
    for polling in (False, True):
        for written in (root, beneath):
            how = f"{'polled' if polling else 'watched'}, {'through' if written == root else 'beneath'}"
            measured[how] = found = None if written is None else _changes(name, root, written, polling, results)
            cells.append("–" if found is None else _shown(found))
    findings = "; ".join(f"{each.status}: {each.detail}: {each.hint}" for each in drive(root, False, MOUNTS))
    results.setdefault("drives", {})[name] = {**measured, "doctor": findings or "nothing"}
    return (name, *cells, findings or "nothing")


def _changes(name: str, root: Path, written: Path, polling: bool, results: dict[str, Any]) -> list[float | None]:
    """Returns the seconds until each change was seen; None for an unseen change. New files and edits of one file alternate."""
    found: list[float | None] = []
    with Following(root, polling) as following:
        for number in range(CHANGES):
            new = "note.md" if number % 2 else f"note-{number}.md"
            content = f"{name} {polling} {written} {number}".encode()
            (written / new).write_bytes(content)
            found.append(following.seen_after(partial(following.has, new, content), UNSEEN_AFTER_S))
            if found[-1] is None:
                break  # the other files would not be seen either
        # A client that caches content (sshfs: 20 s) shows a change only after the cache expires.
        end = time.monotonic() + CACHED_AT_MOST_S
        following.rescan()
        while not following.agrees() and time.monotonic() < end:
            time.sleep(1.0)
            following.rescan()
        if not following.agrees():
            results["violations"].append(f"{name}: what was reported still differs from the disk.")
    return found


def _shown(found: list[float | None]) -> str:
    seen = [each for each in found if each is not None]
    if len(seen) < len(found):
        return f"not within {UNSEEN_AFTER_S:.0f}"
    return f"{statistics.median(seen):.2f} (at most {max(seen):.2f})"


# Ways to save.


def git_checkout(root: Path) -> Callable[[], None]:
    git: list[str | Path] = ["git", "-C", root, "-c", "user.name=x", "-c", "user.email=x@invalid", "-c", "gc.auto=0"]
    command(*git[:3], "init", "-q")
    for version in ("one", "two"):
        for number in range(GIT_FILES):
            path = root / f"d{number % 100}/note-{number}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"Note {number} of version {version}.\n")
        command(*git, "add", "-A")
        command(*git, "commit", "-q", "-m", version)
    command(*git, "checkout", "-q", "HEAD~1")
    return lambda: command(*git, "checkout", "-q", "master")


def rsync(*options: str) -> Callable[[Path], Callable[[], None]]:
    def prepared(root: Path) -> Callable[[], None]:
        source = root.parent / "source"
        source.mkdir()
        for number in range(200):
            (root / f"note-{number}.md").write_text(f"Note {number}, before.\n" * 2000)
            (source / f"note-{number}.md").write_text(f"Note {number}, afterwards.\n" * 2000)
        return lambda: command("rsync", "-a", *options, f"{source}/", f"{root}/")

    return prepared


def office(root: Path) -> Callable[[], None]:
    """LibreOffice opens a document and saves it in another format over an existing file."""
    (root / "source").mkdir()
    (root / "source/report.txt").write_text("Ada wrote a report about the engine.\n")
    (root / "report.odt").write_bytes(b"an older report")
    profile = f"-env:UserInstallation=file://{root.parent}/profile"
    source = root / "source/report.txt"
    return lambda: command("soffice", profile, "--headless", "--convert-to", "odt", "--outdir", root, source)


def phone_sync(root: Path) -> Callable[[], None]:
    """Saves like Syncthing: a hidden temporary file, the older text renamed as a conflict, a rename to the final name."""
    for number in range(50):
        (root / f"note-{number}.md").write_text(f"Note {number} of the computer.\n")

    def sync() -> None:
        for number in range(50):
            path, temporary = root / f"note-{number}.md", root / f".syncthing.note-{number}.md.tmp"
            temporary.write_text(f"Note {number} of the phone.\n")
            if number % 5 == 0:
                path.rename(root / f"note-{number}.sync-conflict-20260101-120000-ABCDEF7.md")
            temporary.rename(path)

    return sync


SAVE_METHODS: dict[str, tuple[str, Callable[[Path], Callable[[], None]]]] = {
    f"git checkout of {GIT_FILES:,} changed files": ("git", git_checkout),
    "rsync of 200 files": ("rsync", rsync()),
    "rsync --inplace of 200 files": ("rsync", rsync("--inplace", "--no-whole-file")),
    "LibreOffice, one document": ("soffice", office),
    "a phone's sync folder, 50 notes, 10 conflicts": ("sh", phone_sync),
}


def save_methods(results: dict[str, Any]) -> str:
    rows: list[tuple[object, ...]] = []
    for name, (program, prepare) in SAVE_METHODS.items():
        if shutil.which(program) is None:
            rows.append((name, "–", "–", f"{program} is not installed"))
            continue
        for polling in (False, True):
            with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
                root = Path(made) / "drive"
                root.mkdir()
                save = prepare(root)
                following = stack.enter_context(Following(root, polling))
                before = following.events
                began = time.monotonic()
                save()
                saved = time.monotonic()
                seen = following.seen_after(following.agrees, PATIENCE_S)
                row = {"save_s": saved - began, "seen_s": seen, "reports": following.events - before}
                row |= {"removals": len(following.removed)}
                how = "polled" if polling else "watched"
                results.setdefault("save_methods", {})[f"{name}, {how}"] = row
                shown = "never" if seen is None else f"{seen:.2f}"
                rows.append((f"{name}, {how}", f"{saved - began:.2f}", shown, f"{row['reports']:,}"))
                if seen is None:
                    results["violations"].append(f"{name}, {how}: what was reported differs from the disk.")
                if following.removed:
                    results["violations"].append(
                        f"{name}, {how}: {len(following.removed)} files were reported as removed."
                    )
    return table(("saved by", "the save itself, s", "seen whole after it, s", "reports"), rows)


def run(results: dict[str, Any]) -> str:
    if os.geteuid() != 0:
        return "Mounting needs root: left out."
    results["violations"] = []
    return f"{drives(results)}\n\n{save_methods(results)}"
