"""Pauses extraction when the model calls of a UTC day have used up the daily budget.

All calls of the day count, also those of queries, but only extraction waits.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog

from daemon.costs.ledger import CostLedger

CHECK_INTERVAL_S = 1.0
"""How often waiting extractions check the budget. A new day and a reload of the configuration end the pause."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Budget:
    """Daily limits; None means no limit."""

    tokens: int | None = None
    money: float | None = None


class DailyBudget:
    """Use on the event loop only."""

    def __init__(self, ledger: CostLedger, budget: Callable[[], Budget]) -> None:
        """`budget` is called at every check, so that a reload applies at once."""
        self._ledger = ledger
        self._budget = budget
        self.paused_since: float | None = None
        """The time when the budget was used up, in Unix seconds; None while it is not."""

    def exhausted(self) -> str | None:
        """Returns the reason to wait, as a text, if the budget is used up; else None."""
        reason = self._reason()
        if reason is not None and self.paused_since is None:
            self.paused_since = time.time()
            log.warning("budget_used_up", waiting_for=reason)
        elif reason is None and self.paused_since is not None:
            self.paused_since = None
            log.info("budget_available")
        return reason

    def _reason(self) -> str | None:
        budget, spent = self._budget(), self._ledger.today()
        if budget.tokens is not None and spent.tokens >= budget.tokens:
            limit = f"{budget.tokens:,} tokens are used up ([llm] budget_tokens_per_day)"
        elif budget.money is not None and spent.money >= budget.money:
            limit = f"{budget.money:g} of money are used up ([llm] budget_money_per_day)"
        else:
            return None
        tomorrow = self._ledger.day + timedelta(days=1)
        return f"tomorrow's budget: today's {limit}; extraction resumes at {tomorrow} 00:00 UTC"

    async def available(self) -> None:
        """Returns when the budget allows another extraction."""
        while self.exhausted() is not None:  # noqa: ASYNC110 - the clock ends the pause, not an event
            await asyncio.sleep(CHECK_INTERVAL_S)
