"""Every route declares the required rights; the client is identified by its token or the socket's peer."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.api.access.client import EVERYONE, ITSELF, OPERATOR, Client, ClientRule, Right
from daemon.api.access.clients import Clients
from daemon.api.access.rights import need_of
from daemon.api.app import build
from daemon.api.context import ApiContext
from daemon.api.endpoints import Endpoints
from daemon.api.event_hub import EventHub
from daemon.api.middleware.peers import Peer, connection_peer
from daemon.api.ports import StartupGate, StartupPorts
from daemon.api.settings import ApiLimits
from daemon.app.lifecycle import add_service_routes
from daemon.contract.http.routes import Need
from daemon.contract.http.routes import Route as Paths
from daemon.contract.scope import ClientScope, Scope
from daemon.errors import Unauthorised
from daemon.page import routes as page_routes

CHANGES = {("POST", Paths.DOCUMENTS), ("DELETE", Paths.DOCUMENTS), ("POST", Paths.RETRY), ("POST", Paths.REMOVE_SOURCE)}
WHOLE = {Paths.METRICS, Paths.IMPORT, Paths.REEXTRACT, Paths.BACKFILL, Paths.EXTRACTION, Paths.VERIFY}
WHOLE |= {Paths.BACKUP, Paths.CONFIRM, Paths.COSTS, Paths.REENCODE}
ADMINISTRATION = (
    Paths.IMPORT,
    Paths.REEXTRACT,
    Paths.BACKFILL,
    Paths.VERIFY,
    Paths.BACKUP,
    Paths.CONFIRM,
    Paths.REENCODE,
)
AUDITED = CHANGES | {("POST", path) for path in ADMINISTRATION} | {("GET", Paths.EXPORT), ("DELETE", Paths.SESSIONS)}
"""Requests that are logged at info, because they change the memory, copy it out, or cost much."""


def app(*more: Any) -> FastAPI:
    context = ApiContext(StartupPorts(None, EventHub()), StartupGate(), ApiLimits())  # type: ignore[arg-type]
    return build(context, [page_routes.add_routes, add_service_routes, *more])


def test_every_route_declares_what_it_needs() -> None:
    routes = [route for route in app().routes if isinstance(route, Route)]
    found = {(method, route.path): need_of(route) for route in routes for method in route.methods or ()}
    assert {path for _, path in found} >= {each.value for each in Paths} - {Paths.HEALTH}
    for (method, path), need in found.items():
        if (method, path) in CHANGES:
            assert need is Need.WRITE, path
        elif path in WHOLE:
            assert need is Need.ADMIN, path
        elif path == Paths.HEALTH:
            assert need is Need.NOTHING
        elif path == Paths.OPENAPI or (path.startswith("/page/") and path != "/page/overview") or path == "/":
            assert need is Need.CLIENT, path
        else:
            assert need is Need.READ, path


def test_requests_that_change_or_copy_the_memory_are_audited_and_no_others() -> None:
    routes = [route for route in app().routes if isinstance(route, Route) and getattr(route.endpoint, "audited", False)]
    assert {(method, route.path) for route in routes for method in route.methods or ()} == AUDITED


def test_a_route_that_declares_nothing_is_not_served() -> None:
    async def forgotten(_request: Request) -> Response:
        return Response()

    def add(endpoints: Endpoints) -> None:
        endpoints.app.add_route("/v1/forgotten", forgotten, ["GET"])

    with pytest.raises(TypeError, match="/v1/forgotten"):
        app(add)
    with pytest.raises(TypeError, match="does not declare"):
        need_of(Route("/x", forgotten))


READER = Client("reader", frozenset({"hr"}), frozenset({Right.READ}))
WRITER = Client("writer", frozenset({"b", "a"}), frozenset({Right.READ, Right.WRITE}))
NOBODY_UID, OTHER_GID = 4_000_001, 4_000_002


def identified(clients: Clients, peer: Peer, token: str | None = None, header: str = "authorization") -> Client | None:
    return asyncio.run(clients.identify(peer, Headers({} if token is None else {header: f"Bearer {token}"})))


def test_peers_have_all_rights_if_no_clients_are_configured(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("sesame")
    clients = Clients((), tmp_path / "t")
    assert identified(clients, Peer("unix", 1, NOBODY_UID, 1)) is EVERYONE
    assert identified(clients, Peer("unix", 1, NOBODY_UID, 1), "anything") is EVERYONE
    assert identified(clients, Peer("tcp", address="127.0.0.1"), "sesame") is EVERYONE
    with pytest.raises(Unauthorised):
        identified(clients, Peer("tcp", address="127.0.0.1"), "other")


def test_peer_matches_the_first_client_with_its_user_or_group() -> None:
    clients = Clients([ClientRule(READER, uid=NOBODY_UID), ClientRule(WRITER, gid=OTHER_GID)])
    assert identified(clients, Peer("unix", 1, NOBODY_UID, 1, groups=frozenset({1, OTHER_GID}))) is READER
    assert identified(clients, Peer("unix", 1, 7, 1, groups=frozenset({1, OTHER_GID}))) is WRITER
    assert identified(clients, Peer("unix", 1, 7, OTHER_GID)) is None  # the gid does not count, only `groups`
    assert identified(clients, Peer("unix", 1, 7, 1, groups=frozenset({1}))) is None
    assert identified(clients, Peer("unix")) is None
    assert identified(clients, Peer("unix", os.getpid(), 7, 1)) is ITSELF
    assert ITSELF.labels == frozenset() and ITSELF.rights == {Right.READ}


def test_token_identifies_the_client_on_tcp_and_socket_and_wrong_token_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two", "api"):
        (tmp_path / name).write_text(f"token-{name}")
    rules = [ClientRule(READER, tmp_path / "one", uid=NOBODY_UID), ClientRule(WRITER, tmp_path / "two")]
    clients = Clients(rules, tmp_path / "api")
    tcp, unix = Peer("tcp", address="127.0.0.1"), Peer("unix", 1, NOBODY_UID, 1)
    for peer in (tcp, unix):
        assert identified(clients, peer, "token-two") is WRITER
        assert identified(clients, peer, "token-api") is OPERATOR
        for wrong in ("", "token-", "token-three"):
            with pytest.raises(Unauthorised):
                identified(clients, peer, wrong)
    (tmp_path / "two").write_text("token-one")  # a token of two clients identifies neither
    with pytest.raises(Unauthorised):
        asyncio.run(_asked_until_seen(clients, tcp))
    clients.use(rules[:1], None)
    assert identified(clients, tcp, "token-one") is READER
    for gone in ("token-api", "token-two"):
        with pytest.raises(Unauthorised):
            identified(clients, tcp, gone)


async def _asked_until_seen(clients: Clients, peer: Peer) -> None:
    for token in ("another", "token-one"):  # an unknown token causes all token files to be read
        try:
            await clients.identify(peer, Headers({"authorization": f"Bearer {token}"}))
        except Unauthorised:
            if token == "token-one":
                raise


def test_the_kernel_names_all_groups_of_a_peer() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)

    class Transport:
        def get_extra_info(self, _name: str) -> socket.socket:
            return ours

    with ours, theirs:
        peer = connection_peer(Transport())  # type: ignore[arg-type]
    assert (peer.pid, peer.uid, peer.gid) == (os.getpid(), os.getuid(), os.getgid())
    assert peer.groups == {os.getgid(), *os.getgroups()}


def test_client_scope_combines_the_clients_labels_with_the_requested_scope() -> None:
    everyone = Client("all", None, frozenset(Right))
    scope = Scope(labels=("x",), source="s")
    assert everyone.limited(scope) is scope
    assert everyone.limited(None) is None
    limited = WRITER.limited(scope)
    assert isinstance(limited, ClientScope)
    assert (limited.labels, limited.source, limited.visible, limited.client) == (("x",), "s", ("a", "b"), "writer")
    assert READER.limited(None) != WRITER.limited(None)
