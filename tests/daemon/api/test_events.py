"""Events reach every reader at once; a slow reader misses some, learns how many, and slows nobody down."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from daemon.api.event_hub import EventHub
from daemon.api.settings import ApiLimits
from daemon.contract.http.routes import Route
from daemon.contract.status import Event
from tests.daemon.api.harness import PATIENCE_S, served, until


def events_in(lines: Iterator[str]) -> Iterator[Event]:
    for line in lines:
        if line.startswith("data: "):
            yield Event.model_validate_json(line[6:])


def test_reader_receives_every_event_published_after_the_response_headers() -> None:
    with served() as api, api.client.stream("GET", Route.EVENTS) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        api.hub.publish("indexed", "file:///a", passages=3)
        api.hub.publish("commit", commit=8)
        found = events_in(answer.iter_lines())
        first, second = next(found), next(found)
        assert (first.event, first.uri, first.model_extra) == ("indexed", "file:///a", {"passages": 3})
        assert (second.event, second.id) == ("commit", (first.id or 0) + 1)


def test_unicode_line_separators_do_not_split_event_data() -> None:
    with served() as api, api.client.stream("GET", Route.EVENTS) as answer:
        api.hub.publish("failed", "file:///a", error="one\x85two\u2028three\u2029\x0b\x0c\x1c")
        found = next(events_in(answer.iter_lines()))
        assert found.model_extra == {"error": "one\x85two\u2028three\u2029\x0b\x0c\x1c"}


def test_a_message_has_id_event_and_one_line_of_data() -> None:
    with served() as api, api.client.stream("GET", Route.EVENTS) as answer:
        api.hub.publish("failed", "file:///a\nb", error="two\nlines")
        lines = [line for line in (next(stream) for stream in [answer.iter_lines()] * 6) if line]
        assert [line.partition(":")[0] for line in lines] == ["", "id", "event", "data"]
        assert json.loads(lines[3][6:])["error"] == "two\nlines"


def test_every_reader_gets_every_event() -> None:
    with (
        served() as api,
        api.client.stream("GET", Route.EVENTS) as one,
        api.client.stream("GET", Route.EVENTS) as other,
    ):
        api.hub.publish("indexed", "u:1")
        assert [next(events_in(each.iter_lines())).uri for each in (one, other)] == ["u:1", "u:1"]


def test_idle_event_stream_sends_heartbeat_comments() -> None:
    with served(ApiLimits(heartbeat_s=0.05)) as api, api.client.stream("GET", Route.EVENTS) as answer:
        lines = answer.iter_lines()
        assert sum(next(lines).startswith(":") for _ in range(6)) == 3


def test_event_readers_beyond_the_limit_get_503_with_retry_after() -> None:
    with served(ApiLimits(event_readers=1)) as api:
        with api.client.stream("GET", Route.EVENTS):
            refused = api.client.get(Route.EVENTS)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        until(lambda: status_of_events(api.client) == 200, "the place is free")


def status_of_events(client: httpx2.Client) -> int:
    with client.stream("GET", Route.EVENTS) as answer:
        return answer.status_code


def test_slow_event_reader_gets_the_count_of_lost_events_and_delays_no_request() -> None:
    hub = EventHub(capacity=100)
    published = 3_000
    with served(hub=hub) as api, api.connect() as plain:
        plain.sendall(b"GET /v1/events HTTP/1.1\r\nHost: h\r\n\r\n")
        assert plain.recv(200).startswith(b"HTTP/1.1 200 ")
        for number in range(published):
            hub.publish("indexed", f"u:{number}", padding="x" * 1_000)
            if number % 100 == 0:
                assert api.client.get(Route.HEALTH).status_code == 200
        hub.publish("last")
        found = read_until_last(plain)
    lost = sum((event.model_extra or {})["count"] for event in found if event.event == "lost")
    indexed = [event.uri for event in found if event.event == "indexed"]
    assert lost > 0
    assert lost + len(indexed) == published
    assert indexed == sorted(indexed, key=lambda uri: int(str(uri)[2:]))


def read_until_last(plain: Any) -> list[Event]:
    raw = b""
    while b"event: last\n" not in raw or not raw.endswith(b"\n\n\r\n"):
        raw += plain.recv(65_536)
    lines = (line.decode() for line in raw.replace(b"\r\n", b"\n").split(b"\n"))
    return list(events_in(lines))


def test_stalled_event_reader_is_disconnected_after_events_stall_s() -> None:
    with served(ApiLimits(events_stall_s=0.2, event_readers=1)) as api, api.connect() as plain:
        plain.sendall(b"GET /v1/events HTTP/1.1\r\nHost: h\r\n\r\n")
        assert plain.recv(200).startswith(b"HTTP/1.1 200 ")
        for number in range(1_000):
            api.hub.publish("indexed", f"u:{number}", padding="x" * 1_000)
        until(lambda: status_of_events(api.client) == 200, "the place is free")


def test_the_streams_end_when_the_daemon_stops() -> None:
    with served() as api, api.client.stream("GET", Route.EVENTS) as answer:
        lines = answer.iter_lines()
        next(lines)
        api.hub.publish("state", state="stopping")
        api.run(api.server.stop(5.0))
        assert [event.event for event in events_in(lines)] == ["state"]


def test_event_hub_numbers_events_of_several_threads_without_gaps() -> None:
    async def collect() -> list[Event]:
        hub = EventHub(capacity=10_000)
        reader = hub.events()

        def publish() -> None:
            for _ in range(500):
                hub.publish("x")

        threads = [threading.Thread(target=publish) for _ in range(4)]
        for thread in threads:
            thread.start()
        found = [await asyncio.wait_for(anext(reader), PATIENCE_S) for _ in range(2_000)]
        for thread in threads:
            thread.join()
        return found

    found = asyncio.run(collect())
    assert [event.id for event in found] == list(range(1, 2_001))


def test_full_event_queue_drops_oldest_events_and_reports_their_count() -> None:
    async def collect() -> list[tuple[str, Any]]:
        hub = EventHub(capacity=3)
        reader = hub.events()
        for number in range(5):
            hub.publish("x", str(number))
        hub.close()
        return [(event.event, event.uri or (event.model_extra or {})["count"]) async for event in reader]

    assert asyncio.run(collect()) == [("lost", 2), ("x", "2"), ("x", "3"), ("x", "4")]


def test_a_reader_of_a_closed_hub_ends_at_once() -> None:
    async def collect() -> list[Event]:
        hub = EventHub()
        hub.close()
        return [event async for event in hub.events()]

    assert asyncio.run(collect()) == []


def test_publishing_after_the_event_loop_closed_raises_no_error() -> None:
    hub = EventHub()

    async def subscribe() -> None:
        hub.events()

    asyncio.run(subscribe())
    hub.publish("x")


def test_cancelled_wait_for_an_event_loses_no_event() -> None:
    async def collect() -> list[str | None]:
        hub = EventHub()
        reader = hub.events()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await anext(reader)
        hub.publish("x", "1")
        return [(await anext(reader)).uri]

    assert asyncio.run(collect()) == ["1"]
