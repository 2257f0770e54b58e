"""How the memory came to be what it is, and what came last: for the page."""

import asyncio
from datetime import UTC, datetime
from heapq import nlargest

from daemon.contract.overview import GrownTo, Overview
from daemon.services.entries import entry
from store.store import Store
from store.types import State

POINTS = 400
"""Commits told of: more than a chart or a slider has room for."""
RECENT = 40


class OverviewService:
    """The `Overviews` port."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def overview(self) -> Overview:
        return await asyncio.to_thread(self._overview)

    def _overview(self) -> Overview:
        there = (document for document in self._store.documents() if document.state is not State.REMOVED)
        recent = nlargest(RECENT, there, key=lambda document: document.committed_at or 0.0)
        growth = [
            GrownTo(
                commit=each.commit,
                time=datetime.fromtimestamp(each.time, UTC),
                passages=each.passages,
                phrases=each.phrases,
                triples=each.triples,
            )
            for each in self._store.growth(POINTS)
        ]
        return Overview(growth=growth, recent=[entry(document) for document in recent])
