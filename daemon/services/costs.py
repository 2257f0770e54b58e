"""Reports the ledger of model calls."""

from datetime import UTC, date, datetime

from daemon.contract.costs import CostEntry, CostsRequest, CostsResponse
from daemon.contract.query import Tokens
from daemon.costs.ledger import CostLedger


class CostService:
    """Serves `GET /v1/costs`."""

    def __init__(self, ledger: CostLedger) -> None:
        self._ledger = ledger

    async def costs(self, request: CostsRequest) -> CostsResponse:
        since = None if request.since is None else _utc_day(request.since)
        return CostsResponse(
            costs=[
                CostEntry(
                    day=date.fromisoformat(key.day),
                    source=key.source,
                    purpose=key.purpose,
                    calls=spent.calls,
                    tokens=Tokens(prompt=spent.prompt, completion=spent.completion),
                    money=round(spent.money, 6),
                )
                for key, spent in self._ledger.entries(since)
            ]
        )


def _utc_day(moment: datetime) -> date:
    try:
        return moment.astimezone(UTC).date()
    except OverflowError:  # within a day of the years 1 or 9999
        return moment.date()
