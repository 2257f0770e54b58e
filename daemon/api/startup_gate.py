"""Makes requests wait for the memory: the API listens before the memory is open."""

import asyncio

from daemon.api.ports import MemoryPorts
from daemon.errors import NotReady

STARTUP_WAIT_S = 100.0
"""How long a request waits for the memory before it is refused. hippoctl's own timeout is longer."""


class StartupGate:
    """Gives the memory's ports to routes once they exist. Use from one event loop only."""

    def __init__(self, wait_s: float = STARTUP_WAIT_S) -> None:
        self._wait_s = wait_s
        self._decided = asyncio.Event()
        self._ports: MemoryPorts | None = None

    @property
    def is_decided(self) -> bool:
        """Whether the start has succeeded or failed, so that requests no longer wait."""
        return self._decided.is_set()

    def open(self, ports: MemoryPorts) -> None:
        """Lets waiting and later requests use `ports`: the memory is open."""
        self._ports = ports
        self._decided.set()

    def give_up(self) -> None:
        """Refuses waiting and later requests: the memory will not be opened. No effect on an open gate."""
        self._decided.set()

    async def ports(self) -> MemoryPorts:
        """Returns the ports when the gate is open. Raises NotReady after `wait_s`, or if hippod stops first."""
        try:
            async with asyncio.timeout(self._wait_s):
                await self._decided.wait()
        except TimeoutError:
            raise NotReady(
                "hippod is starting: the model and the memory are being opened; try again in a moment"
            ) from None
        if self._ports is None:
            raise NotReady("hippod stops before it was ready; ask again when it is back")
        return self._ports
