"""The memory's growth and its newest documents, for the page."""

import asyncio
from datetime import UTC, datetime
from heapq import nlargest

from daemon.contract.scope import Scope
from daemon.contract.status import GrowthPoint, Overview
from daemon.services.documents.document_references import document_entry
from daemon.services.scopes import ScopeService
from store.store import Store
from store.types import State

GROWTH_POINTS_MAX = 400
"""Maximum commits in the growth: more than a chart or slider can show."""
RECENT_DOCUMENTS = 40


class OverviewService:
    """Serves `GET /page/overview`."""

    def __init__(self, store: Store, scopes: ScopeService) -> None:
        self._store = store
        self._scopes = scopes

    async def overview(self, scope: Scope | None = None) -> Overview:
        return await asyncio.to_thread(self._overview, scope)

    def _overview(self, scope: Scope | None) -> Overview:
        holds = self._scopes.holds(scope) if scope is not None else None
        there = (
            document
            for document in self._store.documents()
            if document.state is not State.REMOVED and (holds is None or holds(document))
        )
        recent = nlargest(RECENT_DOCUMENTS, there, key=lambda document: document.committed_at or 0.0)
        growth = [
            GrowthPoint(
                commit=each.commit,
                time=datetime.fromtimestamp(each.time, UTC),
                passages=each.passages,
                phrases=each.phrases,
                triples=each.triples,
            )
            for each in (
                self._store.growth(GROWTH_POINTS_MAX) if scope is None else ()
            )  # known for the whole memory only
        ]
        return Overview(growth=growth, recent=[document_entry(document) for document in recent])
