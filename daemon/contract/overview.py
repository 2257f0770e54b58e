"""What the page is told beside what the routes of the API say: `GET /page/overview`."""

from pydantic import AwareDatetime

from daemon.contract.documents import DocumentEntry
from daemon.contract.model import Response


class GrownTo(Response):
    """What the memory held as of a commit that can still be looked at: counts of what lives."""

    commit: int
    time: AwareDatetime
    passages: int
    phrases: int
    triples: int


class Overview(Response):
    """`growth`: by commit, the last one last. `recent`: the documents committed last, the newest first."""

    growth: list[GrownTo]
    recent: list[DocumentEntry]
