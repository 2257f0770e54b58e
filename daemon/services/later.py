"""The API listens before the memory is open: until then calls of every port but `Progress` and `Events` wait for it."""

import asyncio
import inspect
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from daemon.api.errors import NotReady

WAIT_S = 100.0
"""How long a call waits for the memory; then it is told to come back. hippoctl is silent for longer before it gives up."""


class Opening:
    """Whether the memory is open yet."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._over = asyncio.Event()
        self._wait_s = wait_s
        self._open = False

    def finished(self) -> None:
        """It is open: whoever waits goes on."""
        self._open = True
        self._over.set()

    def given_up(self) -> None:
        """It will not be opened any more: whoever waits is told so."""
        self._over.set()

    async def wait(self) -> None:
        """Returns once the memory is open. NotReady when that takes too long, or hippod stops before."""
        try:
            async with asyncio.timeout(self._wait_s):
                await self._over.wait()
        except TimeoutError:
            raise NotReady(
                "hippod is starting: the model and the memory are being opened; try again in a moment"
            ) from None
        if not self._open:
            raise NotReady("hippod stops before it was ready; ask again when it is back")


class Later:
    """Stands for the port that `protocol` describes until `become` names the real one."""

    def __init__(self, opening: Opening, protocol: type) -> None:
        self._opening = opening
        self._protocol = protocol
        self._real: Any = None

    def become(self, real: Any) -> None:
        """To be called before the opening is `finished`."""
        self._real = real

    def __getattr__(self, name: str) -> Any:
        if self._real is not None:
            return getattr(self._real, name)
        promised = getattr(self._protocol, name)
        if inspect.iscoroutinefunction(promised):

            async def answer(*given: Any, **named: Any) -> Any:
                return await getattr(await self._awaited(), name)(*given, **named)

            return answer

        async def stream(*given: Any, **named: Any) -> AsyncGenerator[Any, None]:
            async with aclosing(getattr(await self._awaited(), name)(*given, **named)) as parts:
                async for part in parts:
                    yield part

        return stream

    async def _awaited(self) -> Any:
        await self._opening.wait()
        return self._real
