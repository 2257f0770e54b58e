"""An owner rule for tests that do not depend on a document's source."""

from daemon.pipeline.ownership import Owners


class AnyOwner(Owners):
    """Every source owns every document."""

    def owns(self, source: str, uri: str) -> bool:
        return True
