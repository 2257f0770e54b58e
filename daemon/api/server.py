"""The API server: starts before the memory is open, and stops within a time limit."""

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog
import uvicorn
from starlette.types import ASGIApp

from daemon.api.access.client import ClientRule
from daemon.api.access.clients import ClientMiddleware, Clients
from daemon.api.app import AddRoutes, build
from daemon.api.context import ApiContext
from daemon.api.listen import ListenError, bind_tcp, bind_unix, file_identity
from daemon.api.middleware.connection import HttpServerConfig
from daemon.api.middleware.request_boundary import RequestBoundary
from daemon.api.middleware.request_limits import ConcurrencyLimit
from daemon.api.middleware.tcp_auth import TcpAuthMiddleware
from daemon.api.ports import StartupGate, StartupPorts
from daemon.api.settings import ApiSettings
from daemon.config_types.path_validators import read_token

log = structlog.get_logger(__name__)
CANCEL_RESERVE_S = 1.0
"""Part of the stop time that is reserved for requests that must be cancelled."""
LAST_ACCEPTED_S = 0.05
"""Time for setting up and reading connections that were accepted just before a stop."""


class ApiServer:
    """On the running event loop, serves `ports` at once, and the memory's ports once the gate `memory` has opened.

    `inherited` is a bound Unix socket that a service manager passed.
    """

    def __init__(
        self,
        ports: StartupPorts,
        memory: StartupGate,
        settings: ApiSettings,
        inherited: socket.socket | None = None,
        *,
        more_routes: Sequence[AddRoutes] = (),
        tcp_middleware: Sequence[Callable[[ASGIApp], ASGIApp]] = (),
        tcp_apps: Mapping[str, ASGIApp] | None = None,
    ) -> None:
        """`tcp_middleware` runs before the checks of `TcpAuthMiddleware`; its last element is the outermost.

        `tcp_apps` are served on TCP only, at and below their paths, see `daemon.api.middleware.tcp_auth`.
        """
        self._settings = settings
        self._inherited = inherited
        self._tcp_middleware = tcp_middleware
        self._tcp_apps = tcp_apps
        self._context = ApiContext(ports, memory, settings.limits)
        self._app = build(self._context, more_routes)
        self._listeners: list[HttpListener] = []
        self._own_file: tuple[int, int] | None = None
        """The identity of the Unix socket's file, if this server created it."""
        # An open event stream was authenticated once. If a token becomes invalid, all streams end.
        self._clients = Clients(settings.clients, settings.token_file, ports.events.disconnect)
        self.tcp_address: tuple[str, int] | None = None
        """The TCP address on which the server listens after `start`, with the chosen port if port 0 is configured."""

    async def start(self) -> None:
        """Returns when connections are accepted. Raises ListenError, after cleaning up, if it cannot listen."""
        try:
            await self._start()
        except BaseException:
            await self.stop(0.0)
            raise

    async def _start(self) -> None:
        settings = self._settings
        unix = self._inherited
        if unix is None:
            unix = bind_unix(settings.socket, settings.mode, settings.group)
            self._own_file = file_identity(settings.socket)
        await self._serve(self._identified(self._app), unix)
        log.info("listening", socket=str(settings.socket))
        if settings.tcp is not None:
            host, port = settings.tcp
            self._check_tokens()
            app: ASGIApp = TcpAuthMiddleware(self._app, host, self._identified, self._tcp_apps)
            for wrap in self._tcp_middleware:
                app = wrap(app)
            tcp = bind_tcp(host, port)
            self.tcp_address = tcp.getsockname()[:2]
            await self._serve(app, tcp)
            log.info("listening", tcp=f"{host}:{self.tcp_address[1]}")

    def _identified(self, app: ASGIApp) -> ASGIApp:
        """Wraps `app` in `ClientMiddleware` for one listener. Each listener has its own connection limit."""
        limits = self._settings.limits
        requests = ConcurrencyLimit(limits.connections, "requests", limits.client_share)
        return ClientMiddleware(app, self._clients, self._context.rate_limiter, requests, self._context.stopping)

    def use_token_file(self, path: Path | None) -> None:
        """Replaces the path `[api] token_file` after a reload. A change of the file's content needs no call."""
        self._clients.use_token_file(path)

    def use_clients(self, clients: Sequence[ClientRule]) -> None:
        """Replaces the clients after a reload. Readers of events must reconnect."""
        if self._clients.use_rules(clients):
            self._context.startup_ports.events.disconnect()

    def _check_tokens(self) -> None:
        files = [rule.token_file for rule in self._settings.clients if rule.token_file is not None]
        if self._settings.token_file is None and not files:
            raise ListenError("[api] tcp needs token_file: a file with the token that clients must send")
        for key, file in [
            ("[api] token_file", self._settings.token_file),
            *(("[[client]] token_file", f) for f in files),
        ]:
            try:
                if file is not None:
                    read_token(file)
            except ValueError as error:
                raise ListenError(f"{key}: allowed is {error}") from error

    async def _serve(self, app: ASGIApp, bound: socket.socket) -> None:
        listener = HttpListener(
            HttpServerConfig(
                RequestBoundary(app, self._context.rate_limiter, self._settings.limits), self._settings.limits
            )
        )
        self._listeners.append(listener)
        await listener.begin(bound)

    def stopping(self) -> None:
        """Ends waiting requests and questions to the model; other requests continue until `stop`."""
        self._context.stopping.set()

    async def stop(self, timeout_s: float) -> None:
        """Stops accepting connections, ends event streams and `wait` requests, lets other requests finish until the timeout,
        then cancels them.

        Await it before closing anything that requests use. The kernel refuses new connections; on an inherited socket it queues
        them for the next hippod process.
        """
        self._context.stopping.set()
        self._context.startup_ports.events.close()
        await asyncio.gather(*(each.end(timeout_s) for each in self._listeners))
        if self._own_file is not None and file_identity(self._settings.socket) == self._own_file:
            self._settings.socket.unlink(missing_ok=True)
        self._own_file = None
        self._clients.close()


class HttpListener(uvicorn.Server):
    """One uvicorn server on one socket. Installs no signal handlers: the daemon handles signals."""

    def __init__(self, config: HttpServerConfig) -> None:
        super().__init__(config)
        self._ready = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()

    async def begin(self, bound: socket.socket) -> None:
        self._running = asyncio.create_task(self.serve([bound]))
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait([self._running, ready], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._running.done():
            bound.close()
            self._running.result()
            raise ListenError("the HTTP server ended as it started")

    async def _stop_accepting(self) -> None:
        """Stops accepting and lets the kernel queue connections. Closing the sockets at once would reset recently accepted
        connections."""
        loop = asyncio.get_running_loop()
        listening = [each for server in self.servers for each in server.sockets]
        if not self.should_exit and listening:
            for each in listening:
                loop.remove_reader(each.fileno())
            await asyncio.sleep(LAST_ACCEPTED_S)

    async def end(self, timeout_s: float) -> None:
        if self._running is None:
            return
        await self._stop_accepting()
        self.should_exit = True
        try:
            async with asyncio.timeout(max(timeout_s - CANCEL_RESERVE_S, 0.2)):
                await asyncio.shield(self._running)
            return
        except TimeoutError:
            log.warning("requests_cut", count=len(self.server_state.tasks))
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        for task in list(self.server_state.tasks):
            task.cancel()
        self.force_exit = True
        with suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_RESERVE_S):
                await asyncio.shield(self._running)
