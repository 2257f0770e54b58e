"""Each limit of the API applies at the socket, is named in the answer, and is counted."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from daemon.api.middleware.peers import Peer
from daemon.api.middleware.request_limits import RateLimiter
from daemon.api.settings import ApiLimits
from daemon.contract.base import Problem
from daemon.contract.http.routes import ProblemType, Route
from daemon.errors import TooManyRequests
from daemon.observe import metrics
from tests.daemon.api.harness import served, until


def refused(reason: str) -> float:
    return metrics.REGISTRY.get_sample_value("hippod_http_refused_total", {"reason": reason}) or 0.0


def test_client_above_its_request_rate_gets_429_until_the_rate_falls() -> None:
    before = refused("too-many-requests")
    with served(ApiLimits(requests_per_s=5.0)) as api:
        answers = [api.client.get(Route.HEALTH) for _ in range(40)]
        turned_away = [each for each in answers if each.status_code == 429]
        assert {each.status_code for each in answers} == {200, 429}
        assert all(each.headers["retry-after"] == "1" for each in turned_away)
        found = Problem.model_validate_json(turned_away[0].content)
        assert (found.type, "requests_per_s" in found.detail) == (ProblemType.TOO_MANY_REQUESTS, True)
        until(lambda: api.client.get(Route.HEALTH).status_code == 200, "served again")
    assert refused("too-many-requests") >= before + len(turned_away)


def test_request_rate_of_0_disables_the_limit() -> None:
    with served(ApiLimits(requests_per_s=0.0)) as api:
        assert {api.client.get(Route.HEALTH).status_code for _ in range(100)} == {200}


def test_rate_limit_recovers_over_time_and_is_kept_per_client() -> None:
    now = 0.0
    rates = RateLimiter(10.0, lambda: now)
    for _ in range(20):
        rates.count("a")
    with pytest.raises(TooManyRequests):
        rates.count("a")
    rates.count("b")
    now = 0.5
    for _ in range(5):
        rates.count("a")
    with pytest.raises(TooManyRequests):
        rates.count("a")
    now = 1_000.0
    for _ in range(20):
        rates.count("a")
    with pytest.raises(TooManyRequests):
        rates.count("a")


def test_rate_limiter_keeps_at_most_4096_clients() -> None:
    rates = RateLimiter(10.0)
    for number in range(10_000):
        rates.count(f"10.0.{number // 256}.{number % 256}")
    assert len(rates._buckets) <= 4096


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        (Peer("unix", 7, 1000, 1000), "uid 1000"),
        (Peer("tcp", address="192.0.2.7"), "192.0.2.7"),
        (Peer("tcp", address="2001:db8:1:2:aaaa::1"), "2001:db8:1:2::/64"),
        (Peer("tcp", address="fe80::1%eth0"), "fe80::/64"),
    ],
)
def test_peer_is_identified_by_its_user_or_its_address(peer: Peer, client: str) -> None:
    assert peer.client == client


def test_refused_and_running_queries_are_counted_in_metrics() -> None:
    before = refused("queries")
    with served(ApiLimits(concurrent_queries=1)) as api, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(api.client.post, Route.QUERY, json={"query": "hold"})
        until(lambda: api.memory.queries_inside == 1, "a query under way")
        assert metrics.REGISTRY.get_sample_value("hippod_http_under_way", {"kind": "queries"}) == 1
        answer = api.client.post(Route.QUERY, json={"query": "more"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        api.memory.released.set()
        assert waiting.result().status_code == 200
    assert refused("queries") == before + 1
    assert metrics.REGISTRY.get_sample_value("hippod_http_under_way", {"kind": "queries"}) == 0


def test_open_connections_are_counted() -> None:
    with served() as api:
        connections = [api.connect() for _ in range(5)]

        def count() -> float:
            return metrics.REGISTRY.get_sample_value("hippod_http_connections", {"side": "unix"}) or 0

        until(lambda: count() >= 5, "five connections")
        before = count()
        for each in connections:
            each.close()
        until(lambda: count() <= before - 5, "none of them")
