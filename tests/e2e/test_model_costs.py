"""No surprises on the bill: an estimate before the first start, a budget that pauses extraction, the ledger of costs."""

import signal
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import tomli_w

from tests.e2e.real_hippod import Daemon, hippod, until
from tests.memory.llm.model_server import ModelServer, obedient

pytestmark = pytest.mark.daemon

FILES = 14
PRICE = [1.0, 10.0]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(obedient) as running:
        yield running


def set_llm(daemon: Daemon, **settings: object) -> None:
    config = tomllib.loads(daemon.config.read_text())
    config["llm"] |= settings
    daemon.config.write_text(tomli_w.dumps(config))


def paid(server: ModelServer) -> Counter[str]:
    """Returns how often the passage of each call of extraction was sent."""
    return Counter(f"{call.purpose} {call.passage}" for call in server.calls if call.purpose in ("entities", "triples"))


def test_costs_are_estimated_limited_by_the_budget_and_recorded(server: ModelServer, tmp_path: Path) -> None:
    llm = {"base_url": server.url, "model": "m", "price_per_million": PRICE}
    daemon = Daemon(tmp_path, llm=llm, openie={"backend": "llm", "concurrency": 1})
    with closing(daemon):
        for file in range(FILES):
            daemon.write(f"{file}.md", f"# Light {file}\n\nAda Kerr built light number {file} on Orrey.\n")

        # Before the first start: two calls for each of ten passages, and no store of documents.
        ran = hippod(tmp_path, "--config", str(daemon.config), "--estimate")
        assert ran.code == 0, ran
        assert f"{FILES} passages to extract; 0 others are extracted already" in ran.out
        assert f"at least {2 * FILES} calls of llm/m/" in ran.out
        assert "prompt and" in ran.out and "at [llm] price_per_million" in ran.out
        assert len(server.calls) == 20
        sampled = sum(prompt_tokens(call) for call in server.calls)
        assert f"about {round(sampled * FILES / 10):,} prompt and {5 * 2 * FILES:,} completion tokens" in ran.out

        # The sample is not paid for again, and the budget of its day includes it. It is used up: nothing more is read.
        set_llm(daemon, budget_tokens_per_day=1)
        daemon.start()
        waiting = until(
            lambda: daemon.status().get("extraction", {}).get("waiting_for"), "extraction waits for the budget"
        )
        assert "budget_tokens_per_day" in waiting
        assert hippod(tmp_path, "--config", str(daemon.config), "--estimate").code == 3
        assert daemon.ctl_json("reextract", "--dry-run")["passages"] >= 0
        assert sum(paid(server).values()) == 20
        assert daemon.metric("hippod_budget_used_up") == 1

        # A higher budget, without a restart: the rest is read, each passage once.
        set_llm(daemon, budget_tokens_per_day=10_000_000)
        daemon.signal(signal.SIGHUP)
        daemon.wait()
        assert set(paid(server).values()) == {1} and len(paid(server)) == 2 * FILES

        # Queries continue without a budget, and count.
        set_llm(daemon, budget_tokens_per_day=1)
        daemon.signal(signal.SIGHUP)
        until(lambda: len(daemon.events("reloaded")) == 2, "the budget is applied")
        assert daemon.ask("POST", "/v1/query", json={"query": "Who built light 3?", "filter": "llm"})["passages"]

        costs = daemon.ctl_json("costs")["costs"]
        by_purpose = {each["purpose"]: each for each in costs}
        assert (by_purpose["entities"]["calls"], by_purpose["triples"]["calls"]) == (FILES, FILES)
        assert by_purpose["triples"]["source"] == str(daemon.drive) and by_purpose["filter"]["source"] is None
        for each in costs:
            prompt, completion = each["tokens"]["prompt"], each["tokens"]["completion"]
            assert each["money"] == pytest.approx((PRICE[0] * prompt + PRICE[1] * completion) / 1e6, abs=1e-6)
        assert daemon.ctl_json("costs", "--since", "2999-01-01")["costs"] == []
        labels = {"source": str(daemon.drive), "purpose": "triples"}
        assert daemon.metric("hippod_model_calls_today", **labels) == FILES

        # After a crash the ledger is the same.
        daemon.kill()
        daemon.start()
        assert daemon.ctl_json("costs")["costs"] == costs
        shown = daemon.ctl("costs").out
        assert "triples" in shown and "total" in shown


def test_reextract_estimates_costs_from_a_sample_and_keeps_its_extractions(server: ModelServer, tmp_path: Path) -> None:
    llm = {"base_url": server.url, "model": "old", "price_per_million": PRICE}
    daemon = Daemon(tmp_path, folders=(), llm=llm, openie={"backend": "llm"})
    with closing(daemon):
        daemon.start()
        daemon.add(*({"id": str(n), "text": f"Ada Kerr built light number {n} on Orrey."} for n in range(FILES)))
        daemon.wait()
        assert daemon.stop() == 0
        server.calls.clear()
        set_llm(daemon, model="new")
        daemon.start()
        plan = daemon.ctl_json("reextract", "--dry-run")
        assert (plan["passages"], plan["calls"], len(server.calls)) == (FILES, 2 * FILES, 20)
        assert plan["tokens"]["completion"] == 5 * 2 * FILES and plan["money"] > 0 and plan["left_s"] > 0
        assert daemon.ctl_json("reextract")["tokens"] == plan["tokens"], "the sample is kept"
        assert daemon.status()["triples"] > 0
        daemon.ctl_json("reextract", "--yes")
        assert set(paid(server).values()) == {1} and len(paid(server)) == 2 * FILES
        assert {each["name"]: each["passages"] for each in daemon.status()["extractors"]}.popitem()[1] == FILES


def prompt_tokens(call) -> int:
    """Returns the prompt tokens that the scripted server reports."""
    return sum(len(message["content"]) for message in call.body["messages"]) // 4
