"""Owners for tests of what happens to documents, whichever source they come from."""

from daemon.pipeline.ownership import Owners


class AnyOwner(Owners):
    """Every source owns every document."""

    def owns(self, source: str, uri: str) -> bool:
        return True
