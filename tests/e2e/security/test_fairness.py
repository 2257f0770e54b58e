"""A client or folder that takes all it can get leaves room for the others."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from store.as_of import MAX_CACHED_COMMITS
from tests.e2e.real_hippod import PATIENCE_S, Daemon, until
from tests.e2e.test_security import free_port

pytestmark = pytest.mark.daemon

TOKENS = {name: f"a-token-of-{name}-for-this-test-alone-0123456789" for name in ("one", "other")}
FAR = {"query": "lamp", "mode": "dense", "after": {"added": 10**12}, "after_timeout_s": 60}
MIB = 1 << 20
WORKERS = 2
TIME_LIMIT_S = 12.0
SLOW_FILES = 6


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    home = tmp_path_factory.mktemp("fair")
    for name, token in TOKENS.items():
        (home / name).write_text(token)
    clients = [
        {"name": name, "token_file": str(home / name), "labels": ["*"], "rights": ["read", "write"]} for name in TOKENS
    ]
    user = psutil.Process().username()
    clients.append({"name": "operator", "user": user, "labels": ["*"], "rights": ["read", "write", "admin"]})
    daemon = Daemon(
        home,
        ("drive", "neighbours"),
        client=clients,
        api={"tcp": f"127.0.0.1:{free_port()}"},
        parsing={"workers": WORKERS, "time_limit_s": TIME_LIMIT_S},
        daemon={"log_level": "debug"},
    )
    daemon.write("lamp.md", "# Lamp\n\nSabine Rell built the Quill lamp.")
    with daemon:
        daemon.wait()
        yield daemon
    print(f"--- {daemon.home} logged:\n{daemon.log_text()[-6000:]}")


def client(daemon: Daemon, name: str) -> httpx2.Client:
    return httpx2.Client(
        transport=httpx2.HTTPTransport(uds=str(daemon.socket)),
        base_url="http://hippod",
        timeout=PATIENCE_S,
        headers={"authorization": f"Bearer {TOKENS[name]}"},
    )


def send(
    daemon: Daemon, held: ExitStack, request: str, name: str, body: bytes = b"", length: int = -1
) -> socket.socket:
    """Sends one request as `name` that announces a body of `length` bytes; appends the connection to `held`."""
    plain = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    plain.settimeout(PATIENCE_S)
    plain.connect(str(daemon.socket))
    head = (
        f"{request} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKENS[name]}\r\nContent-Type: application/json\r\n"
    )
    plain.sendall(f"{head}Content-Length: {len(body) if length < 0 else length}\r\n\r\n".encode() + body)
    return plain


def status_of(plain: socket.socket) -> int:
    """Returns the status of the answer, which must arrive."""
    found = b""
    while b"\r\n" not in found:
        found += plain.recv(4096)
    return int(found.split()[1])


def under_way(daemon: Daemon, kind: str) -> float:
    return daemon.metric("hippod_http_under_way", kind=kind)


def test_queries_waiting_for_a_future_position_delay_no_other_query(daemon: Daemon) -> None:
    with ExitStack() as held, client(daemon, "other") as other, client(daemon, "one") as one:
        for _ in range(64):
            send(daemon, held, "POST /v1/query", "one", json.dumps(FAR).encode())
        until(lambda: under_way(daemon, "waits") == 64, "all of them wait")
        assert under_way(daemon, "queries") == 0
        for each in (one, other):
            answer = each.post("/v1/query", json={"query": "lamp", "mode": "dense"})
            assert (answer.status_code, len(answer.json()["passages"])) == (200, 1)
            assert each.post("/v1/graph", json={"query": "lamp"}).status_code == 200
    until(lambda: not under_way(daemon, "waits"), "those who have gone wait no longer")


def test_one_client_cannot_take_all_waits(daemon: Daemon) -> None:
    with ExitStack() as held, client(daemon, "other") as other, client(daemon, "one") as one:
        for number in range(140):
            if number % 2:
                send(daemon, held, "POST /v1/query", "one", json.dumps(FAR).encode())
            else:  # both kinds of waits count together
                send(daemon, held, "POST /v1/query", "one", json.dumps({**FAR, "k": 1}).encode())
        until(lambda: under_way(daemon, "waits") == 128, "its share waits")
        refused = one.post("/v1/query", json=FAR)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert "client_share" in refused.json()["detail"]
        assert daemon.metric("hippod_http_refused_total", reason="waits of one client") >= 1
        assert other.post("/v1/wait", json={"timeout_s": 60}).status_code == 200
    until(lambda: not under_way(daemon, "waits"), "those who have gone wait no longer")


def test_event_streams_of_one_client_leave_room_for_another(daemon: Daemon) -> None:
    kind = "readers of events"
    with ExitStack() as held:
        streams = [send(daemon, held, "GET /v1/events", "one") for _ in range(64)]
        statuses = [status_of(each) for each in streams]
        assert (statuses.count(200), statuses.count(503)) == (32, 32)
        assert status_of(send(daemon, held, "GET /v1/events", "other")) == 200
        assert daemon.metric("hippod_http_refused_total", reason=f"{kind} of one client") >= 32
    until(lambda: not under_way(daemon, kind), "those who have gone read no events")
    with ExitStack() as held:
        assert status_of(send(daemon, held, "GET /v1/events", "one")) == 200


def test_logins_of_one_client_end_no_session_of_another(daemon: Daemon) -> None:
    base = f"http://{daemon.sections['api']['tcp']}"

    def login(name: str) -> str:
        answer = httpx2.post(f"{base}/page/login", data={"token": TOKENS[name]}, headers={"origin": base})
        assert answer.status_code == 303
        return str(answer.headers["set-cookie"].partition(";")[0])

    def is_open(cookie: str) -> bool:
        return httpx2.get(f"{base}/page/session", headers={"cookie": cookie}).status_code == 200

    other, first = login("other"), login("one")
    later = [login("one") for _ in range(64)]
    assert is_open(other) and is_open(later[-1])
    assert not is_open(first)


def test_uploads_that_one_client_holds_open_leave_room_for_another(daemon: Daemon) -> None:
    with ExitStack() as held, client(daemon, "other") as other:
        piece = b" " * (15 * MIB)
        for size in [15] * 12 + [11]:  # of 192 MiB
            uploading = send(daemon, held, "POST /v1/documents", "one", length=16 * MIB)
            try:
                uploading.sendall(piece[: size * MIB])
            except OSError:
                continue  # refused
        reason = "bodies of one client"
        until(lambda: daemon.metric("hippod_http_refused_total", reason=reason) >= 6, "it may hold half of the memory")
        document = {"id": "o1", "text": "A lamp. " * (2 * MIB // 8)}
        assert other.post("/v1/documents", json={"documents": [document]}).status_code == 200
        other.request("DELETE", "/v1/documents", json={"uris": ["added:o1"]})


def test_requests_that_one_client_holds_open_leave_connections_for_another(daemon: Daemon) -> None:
    with ExitStack() as held, client(daemon, "other") as other:
        for _ in range(300):  # of 512 connections
            send(daemon, held, "POST /v1/documents", "one", length=100)
        until(lambda: under_way(daemon, "requests") >= 256, "it holds its share")
        reason = "requests of one client"
        until(lambda: daemon.metric("hippod_http_refused_total", reason=reason) >= 40, "the others are refused")
        assert other.post("/v1/query", json={"query": "lamp", "mode": "dense"}).status_code == 200


def test_past_queries_do_not_block_present_queries(daemon: Daemon) -> None:
    for number in range(MAX_CACHED_COMMITS + 2):
        daemon.add({"id": f"past{number}", "text": f"The lamp number {number}."})
        daemon.wait()
    last = daemon.status()["commit"]
    with ExitStack() as held, client(daemon, "other") as other:
        asked = [
            send(
                daemon,
                held,
                "POST /v1/query",
                "one",
                json.dumps(
                    {"query": "lamp", "mode": "dense", "as_of": last - 1 - number % (MAX_CACHED_COMMITS + 1)}
                ).encode(),
            )
            for number in range(24)
        ]
        assert other.post("/v1/query", json={"query": "lamp", "mode": "dense"}).status_code == 200
        assert other.post("/v1/query", json={"query": "lamp", "mode": "dense", "as_of": 1}).status_code == 200
        assert {status_of(each) for each in asked} <= {200, 503}
    assert 1 <= daemon.metric("hippod_earlier_states") <= MAX_CACHED_COMMITS
    assert daemon.metric("hippod_earlier_state_bytes") > 0


def nested_tables(cells: int = 400_000) -> str:
    """Returns a page that takes very long to parse."""
    rows = "<tr>" + "<td>x</td>" * 20 + "</tr>"
    depth = 40
    inner = "<table>" * depth + rows * (cells // 20) + "</table>" * depth
    return f"<html><body>{inner}</body></html>"


def slow_document(daemon: Daemon) -> list[dict[str, Any]]:
    return daemon.events("slow_document")


def test_slow_files_of_one_folder_delay_no_other_and_no_added_document(daemon: Daemon) -> None:
    page = nested_tables()
    slow = [daemon.write(f"slow{number}.html", page) for number in range(SLOW_FILES)]
    until(lambda: len(readers(daemon)) > WORKERS, "the slow files take all parsers", pause_s=0.01)
    good = Path(daemon.folders[1], "good.md")
    good.write_text("# Good\n\nThe harbour freezes in winter.")
    [added] = daemon.add({"id": "beside", "text": "The bell rings at noon."})
    for uri in (good.as_uri(), added):
        until(partial(daemon.documents, prefix=uri, state="indexed"), f"{uri} is indexed", pause_s=0.02)
    failed = [
        uri for uri, each in daemon.documents(prefix=daemon.drive.as_uri(), state="failed").items() if uri in slow
    ]
    assert failed == []  # no time limit was reached
    until(lambda: slow_document(daemon), "a slow file made room")
    until(lambda: daemon.documents(prefix=daemon.uri("slow"), state="failed"), "a slow file used its time limit")
    later = Path(daemon.folders[1], "later.md")
    later.write_text("# Later\n\nThe ferry leaves at dawn.")
    before = len(daemon.documents(prefix=daemon.uri("slow"), state="failed"))
    until(lambda: daemon.documents(prefix=later.as_uri(), state="indexed"), "the later file is indexed", pause_s=0.02)
    assert len(daemon.documents(prefix=daemon.uri("slow"), state="failed")) <= before + 1  # one at a time
    for uri in slow:
        Path(re.sub("^file://", "", uri)).unlink()


def readers(daemon: Daemon) -> list[psutil.Process]:
    """Returns the processes that parse."""
    return [each for each in daemon.children() if each.is_running()]
