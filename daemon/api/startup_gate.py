"""The API listens before the memory is open; requests that need the memory wait here for it."""

import asyncio

from daemon.api.service_protocols import MemoryPorts
from daemon.errors import NotReady

STARTUP_WAIT_S = 100.0
"""How long a request waits for the memory before it is refused. hippoctl waits longer than this for an answer."""


class StartupGate:
    """Gives routes the memory's ports once there are any. On one event loop."""

    def __init__(self, wait_s: float = STARTUP_WAIT_S) -> None:
        self._wait_s = wait_s
        self._decided = asyncio.Event()
        self._ports: MemoryPorts | None = None

    @property
    def is_decided(self) -> bool:
        """Whether nobody waits: the memory is open, or will not be."""
        return self._decided.is_set()

    def open(self, ports: MemoryPorts) -> None:
        """The memory is open: requests that wait go on, and later ones wait no more."""
        self._ports = ports
        self._decided.set()

    def give_up(self) -> None:
        """The memory will not be opened: requests that wait are refused. No effect on an open gate."""
        self._decided.set()

    async def ports(self) -> MemoryPorts:
        """Waits until the gate is open. NotReady when that takes longer than `wait_s`, or hippod stops before."""
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
