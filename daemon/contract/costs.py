"""`/v1/costs`: the tokens and money of model calls, by UTC day, source and purpose."""

from datetime import date

from daemon.contract.base import Request, Response, Timestamp
from daemon.contract.query import Tokens


class CostsRequest(Request):
    """`since`: the first day is the UTC day of this time."""

    since: Timestamp | None = None


class CostEntry(Response):
    """The answered calls of one UTC day, source and purpose. `source`: the source of the documents whose passages were
    extracted; null for other calls, such as those of queries. `tokens`: as counted by the server, otherwise estimated. `money`:
    at the price configured at the time of each call, in the currency of `[llm] price_per_million`; 0 without a price.
    """

    day: date
    source: str | None
    purpose: str
    calls: int
    tokens: Tokens
    money: float


class CostsResponse(Response):
    """Entries by day, source and purpose."""

    costs: list[CostEntry]
