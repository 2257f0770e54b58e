"""Unauthorised clients cannot connect, slow clients delay nobody, and no file outside a followed folder is read, by any
name."""

import base64
import contextlib
import grp
import os
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import psutil
import pytest

from daemon.runtime.derived_settings import RESERVED_FILES
from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import NO_PRIVILEGE, PATIENCE_S, Daemon, clean_environment, until, write_config

pytestmark = pytest.mark.daemon

CANARY = "Quetzalnebel"
"""Occurs in files outside all folders."""
NOBODY = 61_234
"""A user without a group."""
TOKEN = "a-token-for-this-test-alone-0123456789"
CONNECTIONS = 24
CONNECT = """
import socket, sys
with socket.socket(socket.AF_UNIX) as client:
    try:
        client.connect(sys.argv[1])
    except PermissionError:
        sys.exit(13)
    client.sendall(b"GET /healthz HTTP/1.1\\r\\nHost: h\\r\\nConnection: close\\r\\n\\r\\n")
    print(client.recv(100).decode())
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def some_group() -> grp.struct_group:
    """Returns a group to which this test's users belong only where it says so."""
    mine = {os.getgid(), *os.getgroups()}
    pool = [each for each in grp.getgrall() if each.gr_gid not in (0, NOBODY)]
    return pool[0] if os.geteuid() == 0 else next(each for each in grp.getgrall() if each.gr_gid in mine)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "passwd").write_text(f"{CANARY} is a secret of the machine.")
    (folder / "note.txt").write_text(f"{CANARY} is a secret of a neighbour.")
    return folder


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, outside: Path) -> Iterator[Daemon]:
    """Yields a daemon on the socket and on TCP, with small limits, whose drive has every kind of link to the outside."""
    home = tmp_path_factory.mktemp("guarded")
    token = home / "token"
    token.write_text(TOKEN)
    api = {
        "tcp": f"127.0.0.1:{free_port()}",
        "token_file": str(token),
        "group": some_group().gr_name,
        "connections": CONNECTIONS,
    }
    limits = {"inbox_documents": 5, "log_level": "info"}
    daemon = Daemon(home, api=api, daemon=limits, parsing={"workers": 1}, folder={"settle_ms": 0})
    daemon.write("own.md", "# Own\n\nSabine Rell built the Quill lamp.")
    (daemon.drive / "link.txt").symlink_to(outside / "note.txt")
    (daemon.drive / "room").symlink_to(outside)
    (daemon.drive / "up.txt").symlink_to("../../" * 8 + "etc/passwd")
    os.link(outside / "note.txt", daemon.drive / "hard.txt")
    # The socket's own mode decides, not its folder's.
    daemon.socket.parent.chmod(0o755)
    with daemon:
        daemon.wait()
        yield daemon
    print(f"--- {daemon.home} logged:\n{daemon.log_text()[-6000:]}")


def base(daemon: Daemon) -> str:
    return f"http://{daemon.sections['api']['tcp']}"


def held(daemon: Daemon) -> str:
    """Returns everything that the memory can output."""
    listed = daemon.http.get("/v1/documents", params={"limit": 10_000}).text
    return "\n".join(daemon.export()) + listed


# Connecting.


def connect_as(daemon: Daemon, *who: str) -> "subprocess.CompletedProcess[str]":
    command = ["setpriv", *who, sys.executable, "-I", "-c", CONNECT, str(daemon.socket)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can be somebody else")
def test_a_user_without_the_group_cannot_connect_and_one_with_it_can(guarded: Daemon) -> None:
    group = some_group()
    found = guarded.socket.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o660, group.gr_gid)
    who = (f"--reuid={NOBODY}", f"--regid={NOBODY}")
    if subprocess.run(
        ["setpriv", *who, "--clear-groups", sys.executable, "-I", "-c", ""], capture_output=True
    ).returncode:
        pytest.skip("other users cannot run this Python")
    stranger = connect_as(guarded, *who, "--clear-groups")
    assert (stranger.returncode, stranger.stdout) == (13, ""), stranger.stderr
    member = connect_as(guarded, *who, f"--groups={group.gr_gid}")
    assert member.returncode == 0, member.stderr
    assert member.stdout.startswith("HTTP/1.1 200")


def test_changes_are_logged_with_the_process_of_the_client(guarded: Daemon) -> None:
    guarded.add({"id": "mine", "text": "Ada wrote this."})

    def reported() -> bool:
        return any(
            (event["method"], event["route"], event["pid"]) == ("POST", "/v1/documents", os.getpid())
            for event in guarded.events("request")
        )

    until(reported, "the request is logged with its process")


# Slow clients.


def test_half_open_tcp_connections_do_not_delay_other_clients(guarded: Daemon) -> None:
    host, port = guarded.sections["api"]["tcp"].split(":")
    heads = [b"", b"GET /v1/st", b"POST /v1/query HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le"]
    good = b"POST /v1/query HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n" % TOKEN.encode()
    heads.append(good + b"Content-Type: application/json\r\nContent-Length: 5")
    with contextlib.ExitStack() as stack:
        silent = []
        for number in range(10 * CONNECTIONS):
            each = stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE_S))
            with contextlib.suppress(OSError):  # cut off already, to make room
                each.sendall(heads[number % len(heads)])
            silent.append(each)

        def ask(number: int) -> tuple[int, int]:
            question = {"query": f"Who built the Quill lamp {number}", "mode": "bm25"}
            headers = {"Authorization": f"Bearer {TOKEN}"}
            over_tcp = httpx2.post(f"{base(guarded)}/v1/query", json=question, headers=headers, timeout=PATIENCE_S)
            return over_tcp.status_code, guarded.http.post("/v1/query", json=question).status_code

        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(ask, range(40))) == {(200, 200)}
    assert guarded.metric("hippod_http_refused_total", reason="made room") > 0


def test_unfinished_login_forms_do_not_delay_other_clients(guarded: Daemon) -> None:
    """On all available connections, by a client without the token."""
    host, port = guarded.sections["api"]["tcp"].split(":")
    half = (
        b"POST /page/login HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 99\r\n\r\ntok"
    )

    def ended() -> float:
        """Counts connections that were closed to make room, or refused because earlier ones had unread data."""
        return sum(guarded.metric("hippod_http_refused_total", reason=each) for each in ("made room", "connections"))

    before = ended()
    with contextlib.ExitStack() as stack:
        for _ in range(3 * CONNECTIONS):
            each = stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE_S))
            with contextlib.suppress(OSError):  # cut off already, to make room
                each.sendall(half)
        for _ in range(CONNECTIONS):
            answer = httpx2.post(
                f"{base(guarded)}/v1/query",
                json={"query": "Who built the Quill lamp", "mode": "bm25"},
                headers={"Authorization": f"Bearer {TOKEN}"},
                timeout=PATIENCE_S,
            )
            assert answer.status_code == 200, answer.text
        assert ended() - before >= 2 * CONNECTIONS


def test_add_to_a_full_inbox_is_refused_until_documents_are_indexed(guarded: Daemon) -> None:
    guarded.add({"id": "first", "text": "It starts the parser."})
    guarded.wait()
    parsers = guarded.children()
    for parser in parsers:
        parser.suspend()
    try:
        guarded.add(*({"id": f"w{n}", "text": f"Document {n} waits."} for n in range(5)))
        more = {"documents": [{"id": "late", "text": "One too many."}]}
        refused = guarded.http.post("/v1/documents", json=more)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert "inbox_documents" in refused.json()["detail"]
        assert guarded.metric("hippod_queue_depth", queue="inbox") == 5
        assert guarded.metric("hippod_http_refused_total", reason="inbox") >= 1
    finally:
        for parser in parsers:
            with contextlib.suppress(psutil.NoSuchProcess):
                parser.resume()
    until(lambda: guarded.http.post("/v1/documents", json=more).status_code == 200, "there is room again")
    guarded.wait()
    assert guarded.documents()["added:late"]["state"] == "indexed"
    assert guarded.metric("hippod_queue_depth", queue="inbox") == 0


# Files outside the folders.


def test_links_out_of_the_drive_are_listed_and_not_read(guarded: Daemon) -> None:
    documents = guarded.documents()
    for name, said in {
        "link.txt": "symbolic",
        "room": "symbolic",
        "up.txt": "symbolic",
        "hard.txt": "hard link",
    }.items():
        assert documents[guarded.uri(name)]["state"] == "skipped", name
        assert said in documents[guarded.uri(name)]["error"]
    assert documents[guarded.uri("own.md")]["state"] == "indexed"
    assert CANARY not in held(guarded)


def test_hard_link_out_of_the_drive_is_not_parsed_after_a_restart(hippo: Hippo, tmp_path: Path) -> None:
    daemon = hippo("one")
    (tmp_path / "outside.txt").write_text(f"{CANARY} is not for this memory.")
    daemon.drive.mkdir(parents=True, exist_ok=True)
    os.link(tmp_path / "outside.txt", daemon.drive / "hard.txt")
    uri = daemon.uri("hard.txt")
    daemon.start().wait()
    assert daemon.documents()[uri]["state"] == "skipped"
    for _ in range(2):
        daemon.restart().wait()
        assert daemon.documents()[uri]["state"] == "skipped"
    assert CANARY not in held(daemon)


def test_requests_cannot_read_or_change_files_outside_the_drive(guarded: Daemon, outside: Path, tmp_path: Path) -> None:
    victim = outside / "passwd"
    names = [f"file://{victim}", str(victim), "../../" * 8 + str(victim)[1:], "../../etc/passwd", "/etc/passwd"]
    uris = guarded.add(*({"id": name, "text": f"A text called {number}."} for number, name in enumerate(names)))
    assert all(uri.startswith("added:") for uri in uris)
    guarded.wait()
    content = base64.b64encode(b"Only these bytes are read.").decode()
    uploads = [{"id": f"up{n}", "filename": name, "content_base64": content} for n, name in enumerate(names)]
    for upload in uploads:
        guarded.add(upload)
        guarded.wait()
    for name in names:
        quoted = httpx2.URL(f"http://hippod/v1/documents/{name}")
        for path in (quoted.raw_path.decode(), f"/v1/documents/{name.replace('/', '%2F')}"):
            assert CANARY not in guarded.http.get(path).text
        guarded.http.post("/v1/retry", json={"uris": [name, f"file://{victim}"]})
        guarded.http.request("DELETE", "/v1/documents", json={"uris": [f"file://{victim}"]})
    guarded.wait()
    assert victim.read_text().startswith(CANARY)
    assert CANARY not in held(guarded)
    body = {"directory": str(tmp_path / "backup")}
    answer = httpx2.post(f"{base(guarded)}/v1/backup", json=body, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 403
    assert not (tmp_path / "backup").exists()


def test_outside_files_swapped_in_during_parsing_are_not_read(guarded: Daemon, outside: Path) -> None:
    """While hippod follows them, a folder, a file and a hard link are swapped repeatedly with outside files."""
    drive = guarded.drive
    again = secrets.token_hex(4)  # the module's daemon has seen the names of an earlier run
    spare = drive.parent / f"spare-{again}"
    spare.mkdir()
    folder, note = drive / f"swap-{again}", drive / f"swap-{again}" / "note.txt"
    folder.mkdir()
    stop = threading.Event()

    def swap() -> None:
        for number in range(400):
            if stop.is_set():
                return
            good = spare / "good"
            good.write_text(f"Good text number {number} of {secrets.token_hex(4)}.")
            good.replace(note)
            if number % 3 == 0:  # the folder becomes a link
                folder.rename(spare / "folder")
                folder.symlink_to(outside)
                folder.unlink()
                (spare / "folder").rename(folder)
            elif number % 3 == 1:  # the file becomes a link
                (spare / "link").symlink_to(outside / "note.txt")
                (spare / "link").replace(note)
            else:  # the file becomes a hard link to an outside file
                os.link(outside / "note.txt", spare / "hard")
                (spare / "hard").replace(note)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        while swapper.is_alive():
            assert CANARY not in held(guarded)
            swapper.join(0.2)
    finally:
        stop.set()
        swapper.join()
    assert CANARY not in held(guarded)
    note.unlink(missing_ok=True)
    uri = guarded.write(f"swap-{again}/note.txt", "It is a file of the drive in the end.")
    until(lambda: guarded.documents().get(uri, {}).get("state") == "indexed", "the file is read in the end")
    assert CANARY not in held(guarded)
    assert (outside / "note.txt").read_text().startswith(CANARY)


def test_retry_reads_no_file_of_a_folder_that_is_no_longer_followed(tmp_path: Path, outside: Path) -> None:
    """A retry does not read a file that an earlier configuration followed and that failed then."""
    daemon = Daemon(tmp_path, folders=("drive", "former"))
    former = daemon.folders[1]
    (former / "cut.pdf").write_bytes(b"%PDF-1.7 cut")
    with daemon:
        daemon.wait()
        assert daemon.documents()[(former / "cut.pdf").as_uri()]["state"] == "failed"
        assert daemon.stop() == 0
        (former / "cut.pdf").unlink()
        shutil.copy(outside / "note.txt", former / "cut.pdf")
        write_config(daemon.config, {**daemon.sections, "folder": daemon.sections["folder"][:1]})
        daemon.start()
        daemon.http.post("/v1/retry", json={})
        daemon.wait()
        assert CANARY not in held(daemon)
        assert daemon.documents()[(former / "cut.pdf").as_uri()]["state"] == "skipped"


# Watches and open files.

HARD_FILES = 450

FEW_WATCHES = f"""
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (200, {HARD_FILES}))
with open("/proc/sys/user/max_inotify_watches", "w") as limit:
    limit.write("4")
{NO_PRIVILEGE}
"""


def namespaces() -> bool:
    probe = "open('/proc/sys/user/max_inotify_watches', 'w').write('9')"
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", probe]
    return shutil.which("unshare") is not None and subprocess.run(command, capture_output=True).returncode == 0


class FewWatches(Daemon):
    """A daemon with few files in a separate user namespace, in which the kernel allows four inotify watches."""

    def launch(self) -> "FewWatches":
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    "unshare",
                    "--user",
                    "--map-root-user",
                    sys.executable,
                    "-c",
                    FEW_WATCHES,
                    "-m",
                    "daemon.main",
                    "--config",
                    str(self.config),
                ],
                env=clean_environment(self.home),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        return self


@pytest.mark.skipif(not namespaces(), reason="needs a user namespace of its own")
def test_missing_inotify_watches_and_file_descriptors_are_reported_and_tolerated(tmp_path: Path) -> None:
    daemon = FewWatches(tmp_path, folder={"poll_interval_s": 0.1, "settle_ms": 20})
    for number in range(8):
        (daemon.drive / f"d{number}").mkdir()
    with daemon:
        daemon.wait()
        [source] = daemon.status()["sources"]
        assert source["state"] == "polling"
        assert "fs.inotify.max_user_watches" in source["detail"]
        assert "fs.inotify.max_user_watches" in daemon.events("folder_polled")[0]["error"]
        uri = daemon.write("d7/late.txt", "It is found all the same.")
        until(lambda: uri in daemon.documents(state="indexed"), "a file in a folder without a watch is found")
        # The soft limit is raised to the hard one; if that is small, there are fewer connections than configured.
        assert daemon.metric("process_max_fds") == HARD_FILES
        [few] = daemon.events("open_files_few")
        assert (few["limit"], few["connections"]) == (HARD_FILES, HARD_FILES - RESERVED_FILES)
        assert "LimitNOFILE" in few["hint"]
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(2 * (HARD_FILES - RESERVED_FILES))]
        try:
            for each in crowd:
                each.connect(str(daemon.socket))
            assert daemon.http.post("/v1/query", json={"query": "late", "mode": "bm25"}).status_code == 200
        finally:
            for each in crowd:
                each.close()
