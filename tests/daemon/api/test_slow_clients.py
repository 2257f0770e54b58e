"""A client that sends too much, too slowly, or reads too slowly gets its own answer and does not delay others."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from daemon.api.settings import ApiLimits
from daemon.contract.base import Problem
from daemon.contract.http.routes import PROBLEM_JSON, ProblemType, Route
from tests.daemon.api.harness import Served, read_all, read_one, served, until

POST = b"POST %s HTTP/1.1\r\nHost: hippod\r\nContent-Type: application/json\r\n"


def ask(api: Served, text: str) -> httpx2.Response:
    return api.client.post(Route.QUERY, json={"query": text})


def problem_in(answer: bytes) -> Problem:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert PROBLEM_JSON.encode() in head
    return Problem.model_validate_json(body)


def test_body_above_the_limit_is_refused_while_it_is_received() -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 500:
            sent += 1
            yield b" " * 65_536

    with served(ApiLimits(request_bytes=1_000_000)) as api:
        answer = api.client.post(Route.QUERY, content=endless(), headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        assert Problem.model_validate_json(answer.content).type == ProblemType.TOO_LARGE
        assert ask(api, "next").status_code == 200


def test_body_with_too_large_a_content_length_is_refused_before_it_is_sent() -> None:
    with served(ApiLimits(request_bytes=1_000)) as api, api.connect() as plain:
        plain.sendall(POST % b"/v1/query" + b"Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n")
        answer = read_one(plain)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert problem_in(answer).type == ProblemType.TOO_LARGE


@pytest.mark.parametrize("path", [Route.DOCUMENTS, Route.IMPORT])
def test_lines_and_imports_have_limits_of_their_own(path: str) -> None:
    body = b'{"id": "1", "text": "%s"}\n' % (b"x" * 3_000)
    kind = "application/x-ndjson" if path == Route.DOCUMENTS else "application/json"
    with served(ApiLimits(request_bytes=4_000, lines_bytes=10_000, import_bytes=20_000)) as api:
        most = 3 if path == Route.DOCUMENTS else 6
        fits = api.client.post(path, content=(body for _ in range(most)), headers={"Content-Type": kind})
        assert fits.status_code == 200
        too_much = api.client.post(path, content=(body for _ in range(most + 1)), headers={"Content-Type": kind})
        assert too_much.status_code == 413


def test_parsing_of_json_lines_stops_at_the_document_limit() -> None:
    kind = {"Content-Type": "application/x-ndjson"}
    three = b'{"text": "a"}\n\n' * 3
    with served(ApiLimits(documents_per_request=3)) as api:
        assert api.client.post(Route.DOCUMENTS, content=three, headers=kind).status_code == 200
        # The data after the fourth line is not JSON, and is not read.
        for fourth in (b'{"text": "b"}', b'{"text": "b"}\nnonsense\n', b"nonsense"):
            answer = api.client.post(Route.DOCUMENTS, content=three + fourth, headers=kind)
            assert answer.status_code == 413
            assert "more than 3 documents" in answer.json()["detail"]
            assert "send them in several requests" in answer.json()["detail"]


def test_json_line_above_the_size_limit_is_refused_with_its_number() -> None:
    with served(ApiLimits(request_bytes=10_000)) as api:
        pieces = (b"x" * 1_000 for _ in range(50))
        answer = api.client.post(Route.DOCUMENTS, content=pieces, headers={"Content-Type": "application/x-ndjson"})
        assert answer.status_code == 413
        assert "Line 1 " in answer.json()["detail"]


@pytest.mark.slow
def test_slowly_sent_body_does_not_delay_50_other_queries() -> None:
    body = json.dumps({"query": "slow"}).encode()
    go_on = threading.Event()
    with served() as api, api.connect() as plain:
        plain.sendall(POST % b"/v1/query" + b"Content-Length: %d\r\n\r\n" % len(body) + body[:1])

        def dribble() -> bytes:
            for at in range(1, len(body)):
                go_on.wait(0.02)
                plain.sendall(body[at : at + 1])
            return read_one(plain)

        with ThreadPoolExecutor(9) as pool:
            slow = pool.submit(dribble)
            answers = list(pool.map(lambda number: ask(api, f"q{number}").json()["query"], range(50)))
            assert answers == [f"q{number}" for number in range(50)]
            go_on.set()
            assert slow.result().startswith(b"HTTP/1.1 200 ")


def test_body_that_stalls_is_refused_with_408() -> None:
    with served(ApiLimits(body_grace_s=0.2)) as api, api.connect() as plain:
        plain.sendall(POST % b"/v1/query" + b"Content-Length: 100\r\n\r\n{")
        answer = read_all(plain)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert problem_in(answer).type == ProblemType.TOO_SLOW


def test_body_below_the_minimum_rate_is_refused_with_408() -> None:
    with served(ApiLimits(body_grace_s=0.3, min_bytes_per_s=10_000)) as api, api.connect() as plain:
        plain.sendall(POST % b"/v1/import" + b"Content-Length: 100000\r\n\r\n")
        stop = threading.Event()

        def trickle() -> None:
            while not stop.wait(0.05):
                try:
                    plain.sendall(b"x")
                except OSError:
                    return

        feeder = threading.Thread(target=trickle)
        feeder.start()
        try:
            assert read_one(plain).startswith(b"HTTP/1.1 408 ")
        finally:
            stop.set()
            feeder.join()


def test_unread_body_does_not_interrupt_an_event_stream() -> None:
    with served(ApiLimits(body_grace_s=0.2, heartbeat_s=0.05)) as api, api.connect() as plain:
        plain.sendall(b"GET /v1/events HTTP/1.1\r\nHost: hippod\r\nContent-Length: 100\r\n\r\n{")
        received = b""
        while received.count(b"\n\n") < 20:  # some at the beginning, then one every 0.05 s
            piece = plain.recv(1_000)
            assert piece, received
            received += piece


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTT", b"GET /healthz HTTP/1.1\r\nHost: hip"])
def test_connection_with_an_incomplete_request_head_is_closed(sent: bytes) -> None:
    with served(ApiLimits(headers_timeout_s=0.2)) as api, api.connect() as plain:
        plain.sendall(sent)
        assert read_all(plain) == b""


def test_reused_connection_with_an_incomplete_request_head_is_closed() -> None:
    with served(ApiLimits(headers_timeout_s=0.6)) as api, api.connect() as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        assert read_one(plain).startswith(b"HTTP/1.1 200 ")
        plain.sendall(b"GET /heal")
        assert read_all(plain) == b""


def test_idle_connection_between_requests_stays_open() -> None:
    with served(ApiLimits(headers_timeout_s=0.6, linger_s=0.6)) as api, api.connect() as plain:
        for _ in range(2):
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
            assert read_one(plain).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.9)  # longer than the deadline, which must not be running


def test_connection_is_closed_if_a_refused_body_does_not_end() -> None:
    with served(ApiLimits(request_bytes=1_000, linger_s=0.2, headers_timeout_s=600.0)) as api, api.connect() as plain:
        plain.sendall(POST % b"/v1/query" + b"Transfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(OSError):
            for _ in range(1_000_000):
                plain.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")


def test_connection_stays_usable_after_a_refused_body_ends() -> None:
    with served(ApiLimits(request_bytes=1_000, linger_s=0.6)) as api, api.connect() as plain:
        plain.sendall(POST % b"/v1/query" + b"Content-Length: 2000\r\n\r\n")
        assert read_one(plain).startswith(b"HTTP/1.1 413 ")
        plain.sendall(b" " * 2_000)
        time.sleep(0.9)  # longer than the deadline, which must not be running
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        assert read_one(plain).startswith(b"HTTP/1.1 200 ")


def test_queries_beyond_the_limit_get_503_with_retry_after() -> None:
    with served(ApiLimits(client_share=1.0, concurrent_queries=2)) as api, ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(ask, api, "hold") for _ in range(2)]
        until(lambda: api.memory.queries_inside == 2, "two queries under way")
        refused = ask(api, "one more")
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        assert Problem.model_validate_json(refused.content).type == ProblemType.BUSY
        assert api.client.get(Route.STATUS).status_code == 200
        api.memory.released.set()
        assert [each.result().status_code for each in waiting] == [200, 200]
        assert ask(api, "one more").status_code == 200


def test_a_slow_body_takes_no_query_slot() -> None:
    with served(ApiLimits(concurrent_queries=1)) as api, api.connect() as plain:
        plain.sendall(POST % b"/v1/query" + b"Content-Length: 100\r\n\r\n{")
        assert ask(api, "x").status_code == 200


def test_all_bodies_share_a_memory_limit_that_finished_bodies_release() -> None:
    half = b'{"id": "1", "text": "%s"}\n' % (b"x" * 60_000)
    kind = {"Content-Type": "application/x-ndjson"}
    with served(ApiLimits(body_memory_bytes=100_000, request_bytes=90_000, lines_bytes=90_000)) as api:
        with api.connect() as plain:
            plain.sendall(
                POST.replace(b"json", b"x-ndjson") % b"/v1/documents" + b"Content-Length: 80000\r\n\r\n" + half
            )
            until(lambda: api.client.post(Route.DOCUMENTS, content=half, headers=kind).status_code == 503, "no room")
        until(lambda: api.client.post(Route.DOCUMENTS, content=half, headers=kind).status_code == 200, "room again")
        for _ in range(5):
            assert api.client.post(Route.DOCUMENTS, content=half, headers=kind).status_code == 200


def test_body_memory_limit_always_fits_one_body_of_the_maximum_size() -> None:
    with served(ApiLimits(body_memory_bytes=10, request_bytes=50_000)) as api:
        assert api.client.post(Route.QUERY, json={"query": "x" * 30_000}).status_code == 200


HOLD = POST % b"/v1/query" + b"Content-Length: 17\r\n\r\n" + b'{"query": "hold"}'
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"


def test_connection_beyond_the_limit_gets_a_problem_if_all_others_are_busy() -> None:
    with served(ApiLimits(client_share=1.0, connections=3)) as api:
        busy = [api.connect() for _ in range(3)]
        for each in busy:
            each.sendall(HOLD)
        until(lambda: api.memory.queries_inside == 3, "three queries under way")
        with api.connect() as plain:
            plain.sendall(HEALTH)
            answer = read_all(plain)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in answer.lower()
        assert problem_in(answer).type == ProblemType.BUSY
        api.memory.released.set()
        for each in busy:
            assert read_one(each).startswith(b"HTTP/1.1 200 ")
            each.close()
        until(lambda: reachable(api), "served again")


def test_connection_beyond_the_limit_replaces_the_longest_silent_one() -> None:
    with served(ApiLimits(client_share=1.0, connections=3)) as api:
        served_once, silent, half = (api.connect() for _ in range(3))
        served_once.sendall(HEALTH)
        assert read_one(served_once).startswith(b"HTTP/1.1 200 ")
        half.sendall(b"GET /heal")
        with api.connect() as plain:
            plain.sendall(HEALTH)
            assert read_one(plain).startswith(b"HTTP/1.1 200 ")
            assert read_all(silent).startswith(b"HTTP/1.1 503 ")
            with api.connect() as another:
                another.sendall(HEALTH)
                assert read_one(another).startswith(b"HTTP/1.1 200 ")
            assert read_all(half).startswith(b"HTTP/1.1 503 ")
        # A client that was served keeps its connection while there are others that never sent a request.
        served_once.sendall(HEALTH)
        assert read_one(served_once).startswith(b"HTTP/1.1 200 ")
        for each in (served_once, silent, half):
            each.close()


def reachable(api: Served) -> bool:
    return api.client.get(Route.HEALTH).status_code == 200


def test_export_pauses_while_the_client_does_not_read() -> None:
    with served() as api, api.connect() as plain:
        api.memory.export_chunks = 10_000_000
        plain.sendall(b"GET /v1/export HTTP/1.1\r\nHost: h\r\n\r\n")
        assert plain.recv(1_000).startswith(b"HTTP/1.1 200 ")
        until(lambda: stands_still(lambda: api.memory.exported), "the export pauses")
        assert api.memory.exported < 5_000
        assert ask(api, "meanwhile").status_code == 200


def stands_still(count: Any) -> bool:
    before = count()
    time.sleep(0.2)
    return bool(count() == before)


def test_stalled_export_reader_is_disconnected_and_its_slot_freed() -> None:
    with served(ApiLimits(read_stall_s=1.0, concurrent_exports=1)) as api, api.connect() as plain:
        api.memory.export_chunks = 10_000_000
        plain.sendall(b"GET /v1/export HTTP/1.1\r\nHost: h\r\n\r\n")
        assert plain.recv(1_000).startswith(b"HTTP/1.1 200 ")

        def place_is_free() -> bool:
            with api.client.stream("GET", Route.EXPORT) as answer:
                return answer.status_code == 200

        assert not place_is_free()
        until(place_is_free, "the place is free")


def test_wait_is_cancelled_if_its_client_disconnects() -> None:
    with served() as api:
        with api.connect() as plain:
            plain.sendall(POST % b"/v1/wait" + b"Content-Length: 2\r\n\r\n{}")
            until(lambda: api.memory.waits_inside == 1, "the wait is under way")
        until(lambda: api.memory.cancelled == 1, "the wait is given up")
