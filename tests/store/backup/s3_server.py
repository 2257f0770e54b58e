"""moto's S3 server on loopback, and a proxy that breaks connections."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK = 4096


class BreakingProxy:
    """Passes connections on to `port`; cuts the next `breaks` of them after `after` bytes in `direction` ("up" or "down")."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.breaks = 0
        self.after = 0
        self.direction = "up"
        self.broken = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                for pair in ((client, server, "up"), (server, client, "down")):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, direction: str) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(CHUNK):
                passed += len(data)
                with self._lock:
                    cut = self.breaks > 0 and direction == self.direction and passed > self.after
                    if cut:
                        self.breaks -= 1
                        self.broken += 1
                if cut:
                    target.sendall(data[: len(data) // 2])
                    break
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def s3_server() -> Iterator[int]:
    """Yields the port of an empty server."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield server.get_host_and_port()[1]
    finally:
        server.stop()
