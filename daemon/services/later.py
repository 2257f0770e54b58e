"""The API listens before the memory is open: until then every port but `Progress` says so."""

from typing import Any

from daemon.api.errors import NotReady


class Later:
    """Stands for a port until `become` names the real one."""

    def __init__(self) -> None:
        self._real: Any = None

    def become(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        if self._real is None:
            raise NotReady("hippod is starting: the model and the memory are being opened; try again in a moment")
        return getattr(self._real, name)
