"""Reports the ledger of model calls."""

from datetime import UTC, date

from daemon.contract.costs import CostEntry, CostsRequest, CostsResponse
from daemon.contract.query import Tokens
from daemon.costs.ledger import CostLedger


class CostService:
    """Implements `CostPort`."""

    def __init__(self, ledger: CostLedger) -> None:
        self._ledger = ledger

    async def costs(self, request: CostsRequest) -> CostsResponse:
        since = None if request.since is None else request.since.astimezone(UTC).date()
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
