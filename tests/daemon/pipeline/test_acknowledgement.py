"""A source's position is stored in the commit that completes the delivery; the pipeline knows nothing else about positions."""

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

from consumers.types import ParsedDocument, Passage
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work_items import DeliveredDocument, Work, merged_positions
from memory.encoder import make_encoder
from store.store import Store
from tests.daemon.pipeline.any_owner import AnyOwner
from tests.daemon.pipeline.test_order import NothingFound


class Counted:
    """A tracker that stores the number of its committed parts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.committed = 0

    def positions(self, parts: Collection[object]) -> dict[str, Any]:
        return {self.name: self.committed + len(parts)}


class Part:
    def __init__(self, tracker: Counted) -> None:
        self.tracker = tracker

    def done(self) -> None:
        self.tracker.committed += 1


def test_acknowledgements_are_merged_by_their_tracker() -> None:
    one, other = Counted("one"), Counted("other")
    assert merged_positions([Part(one), Part(other), Part(one)]) == {"one": 2, "other": 1}
    assert (one.committed, other.committed) == (0, 0)
    assert merged_positions([]) == {}


def test_position_is_stored_with_its_documents_also_for_replaced_work(tmp_path: Path) -> None:
    async def run() -> None:
        encoder = make_encoder("hash", "", 64, "cpu")
        with Store(tmp_path, encoder.identity) as store:
            pipeline = Pipeline(
                store,
                encoder,
                cast("Any", NothingFound()),
                cast("Any", None),
                lambda *_, **__: None,
                1,
                owners=AnyOwner(),
            )
            tracker = Counted("any source: its position")
            # nothing is committed yet, so the later texts wait and replace the earlier
            for text in ("first", "second", "third"):
                passage = Passage("T", f"The {text} text.", {}, ())
                task = DeliveredDocument("any:a", ParsedDocument("any:a", "T", (passage,)))
                pipeline.intake.put(Work(task.uri, task, "any", acknowledgements=[Part(tracker)]))
            await pipeline.deliver(
                DeliveredDocument("any:b", ParsedDocument("any:b", "T", (Passage("T", "Another text.", {}, ()),))),
                "any",
                acknowledgement=Part(tracker),
            )
            await pipeline.deliver(task, "any", acknowledgement=Part(tracker))
            pipeline.start()
            async with asyncio.timeout(60):
                await pipeline.drained()
            await pipeline.stop(10)
            assert tracker.committed == 5
            assert store.positions["any source: its position"] == 5
            assert {document.uri for document in store.documents()} == {"any:a", "any:b"}

    asyncio.run(run())
