"""Passages are extracted concurrently; an outage is waited for, and a passage that the model cannot handle fails alone."""

import asyncio

from daemon.costs.daily_budget import Budget, DailyBudget
from daemon.costs.ledger import CostLedger
from daemon.pipeline import outage
from daemon.pipeline.extraction.extractors import ServerExtractor
from memory.llm.errors import BadAnswer, ModelDown
from memory.openie.llm.extractor import NamedEntities
from store.types import Extraction, ExtractionOutcome, PassageText

PASSAGES = [PassageText(name, "", f"text {name}") for name in "abc"]


class Server:
    """An extractor and its probe: `down` until released, and never able to extract the passage `bad`."""

    def __init__(self, bad="", down=False):
        self.bad, self.down = bad, down
        self.first_calls, self.under_way, self.most = [], 0, 0

    async def read(self, passage, load, save):
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(0)
            if load(passage.id) is None:
                self.first_calls.append(passage.id)
                save(passage.id, NamedEntities((), 1, 1, 0.0))
            if self.down:
                raise ModelDown("away")
            if passage.id == self.bad:
                raise BadAnswer("json", "no JSON")
            return Extraction(passage.id, "llm/x")
        finally:
            self.under_way -= 1

    async def probe(self):
        if self.down:
            raise ModelDown("away")


def read(server, meanwhile=lambda: None):
    async def scenario():
        extractor = ServerExtractor("llm/x", server, server.probe, DailyBudget(CostLedger(None, lambda: None), Budget))
        extractor.start()
        reading = asyncio.create_task(extractor.extract(PASSAGES))
        await asyncio.sleep(0.02)
        meanwhile()
        found = await asyncio.wait_for(reading, 30)
        extractor.stop()
        return extractor, found

    return asyncio.run(scenario())


def test_passage_with_an_invalid_model_answer_fails_alone():
    server = Server(bad="b")
    extractor, found = read(server)
    assert [(each.passage, each.status, each.error) for each in found] == [
        ("a", ExtractionOutcome.DONE, None),
        ("b", ExtractionOutcome.FAILED, "no JSON"),
        ("c", ExtractionOutcome.DONE, None),
    ]
    assert server.most == 3 and not extractor._entities


def test_outage_is_waited_for_without_repeating_successful_calls(monkeypatch):
    monkeypatch.setattr(outage, "PROBE_MAX_PAUSE_S", 0.01)
    server = Server(down=True)

    def back():
        server.down = False

    _, found = read(server, back)
    assert [each.status for each in found] == [ExtractionOutcome.DONE] * 3
    assert sorted(server.first_calls) == ["a", "b", "c"]
