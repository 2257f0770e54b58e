"""What a check of the store and a backup say."""

from daemon.contract.model import Response


class VerifyResponse(Response):
    """What deriving everything once more from the tables found at `commit`: no `problems`, where all is well."""

    commit: int
    lines: int
    """Lines of the export that were compared."""
    synonym_recall: float
    """Share of the synonym edges that there should be; of a sample where there are many phrases."""
    problems: list[str]


class BackupResponse(Response):
    """What a backup holds: the memory at `commit`."""

    directory: str
    commit: int
    files: int
    bytes: int
