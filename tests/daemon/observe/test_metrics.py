"""What a daemon that did everything once shows to Prometheus, and what its log does not show: one run for all of it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.real_hippod import Daemon, until
from tests.memory.llm.model_server import Call, ModelServer, Status, Text, obedient

pytestmark = pytest.mark.daemon

ROOT = Path(__file__).parents[3]
GRAFANA = ROOT / "examples" / "grafana"
CANARY = "Zirkonvogel"
"""In the title, the text, an entity, a query and a question; nowhere in the log."""
TARGET_LABELS = {"instance", "job"}
PROMETHEUS_OWN = {"up"}
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",), "info": ("_info",)}


def script(call: Call) -> Any:
    """Does as asked, but for one passage, which it refuses and quotes, and one that it answers with nonsense."""
    if call.purpose not in ("entities", "triples"):
        return obedient(call)
    if "refuse" in call.passage:
        return Status(400, json.dumps({"error": {"message": f"I will not read {call.passage}"}}))
    if "nonsense" in call.passage:
        return Text(f"{CANARY} is what I say")
    return obedient(call)


@dataclass
class Scraped:
    """`/metrics` as it was at the end: types and label names by family, values by sample."""

    types: dict[str, str]
    names: set[str]
    labels: dict[str, set[str]]
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float]

    def value(self, name: str, **labels: str) -> float:
        """The sum over samples of the name that have these labels."""
        wanted = set(labels.items())
        return sum(value for (found, given), value in self.samples.items() if found == name and wanted <= given)


def scraped(text: str) -> Scraped:
    found = Scraped({}, set(), {}, {})
    for family in text_string_to_metric_families(text):
        found.types[family.name] = family.type
        found.names |= {family.name + suffix for suffix in SUFFIXES.get(family.type, ("",))}
        for sample in family.samples:
            found.labels.setdefault(sample.name, set()).update(sample.labels)
            found.samples[(sample.name, frozenset(sample.labels.items()))] = sample.value
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Scraped]]:
    """A daemon that read, failed, extracted, answered and refused."""
    with ModelServer(script) as server:
        daemon = Daemon(
            tmp_path_factory.mktemp("metrics"),
            llm={"base_url": server.url, "model": "m", "timeout_s": 20.0, "max_retries": 0},
            openie={"backend": "llm"},
            schedule={"rescan": "off", "snapshot": "2s", "compact": "1s"},
        )
        daemon.write("good.md", f"# {CANARY}\n\n{CANARY} was built by Sabine Rell for Project Attic.")
        daemon.write("refused.txt", f"Please refuse {CANARY}, which nobody reads.")
        daemon.write("nonsense.txt", f"Answer nonsense to {CANARY}.")
        daemon.write("cut.pdf", f"%PDF-1.7 {CANARY}".encode())
        daemon.write("broken.json", f'{{"id": "{CANARY}", "text": 7}}')
        daemon.write("notjson.json", f'{{"text": "{CANARY}')
        daemon.write("empty.txt", "")
        daemon.write("lines.jsonl", f'{{"id": "1", "text": "{CANARY} {CANARY}."}}\n{{"{CANARY}": 1}}\n')
        try:
            daemon.start()
            daemon.add({"id": "added", "title": CANARY, "text": f"{CANARY} sleeps."})
            daemon.http.post("/v1/documents", content=f'{{"{CANARY}": [')
            daemon.http.post("/v1/documents", json={"documents": [{"id": "x", "text": CANARY, "triples": CANARY}]})
            daemon.wait()
            for mode in ("fused", "hipporag2", "bm25"):
                daemon.query(f"Who built {CANARY}", mode)
            daemon.http.post("/v1/query", json={"query": CANARY, "mode": CANARY})
            daemon.ask("POST", "/v1/ask", json={"question": f"Who built {CANARY}?"})
            daemon.http.get(f"/v1/documents/{CANARY.lower()}")
            daemon.http.get(f"/{CANARY}")
            daemon.export()
            until(lambda: daemon.metric("hippod_checkpoint_commit") > 0, "a checkpoint is written")
            until(lambda: daemon.metric("hippod_job_seconds_count", task="compact") > 0, "a compaction has run")
            yield daemon, scraped(daemon.http.get("/metrics").text)
        finally:
            daemon.close()
            print(f"--- logged:\n{daemon.log_text()[-6000:]}")


def test_every_pipeline_and_query_stage_has_a_duration_histogram(run: tuple[Daemon, Scraped]) -> None:
    found = run[1]
    for stage in ("parse", "split", "extract", "encode", "commit"):
        assert found.value("hippod_stage_seconds_count", stage=stage) > 0, stage
    for stage in ("encode", "triples", "passages", "recognition", "walk", "rank", "postings"):
        assert found.value("hippod_query_stage_seconds_count", stage=stage) > 0, stage
    assert found.value("hippod_query_seconds_count", mode="bm25") == 1


def test_failures_are_counted_by_reason(run: tuple[Daemon, Scraped]) -> None:
    found = run[1]
    assert found.value("hippod_failures_total", state="failed", reason="damaged") >= 1
    assert found.value("hippod_failures_total", state="failed", reason="json") >= 2
    assert found.value("hippod_failures_total", state="skipped", reason="no text") >= 1
    assert found.value("hippod_failures_total", reason="other") == 0


def test_model_calls_and_tokens_are_counted_by_purpose(run: tuple[Daemon, Scraped]) -> None:
    found = run[1]
    for purpose in ("entities", "triples", "answer"):
        assert found.value("hippod_model_tokens_total", purpose=purpose, kind="prompt") > 0, purpose
        assert found.value("hippod_model_tokens_total", purpose=purpose, kind="completion") > 0, purpose
    assert found.value("hippod_model_calls_total", purpose="entities", outcome="ok") > 0
    assert found.value("hippod_model_down") == 0


def test_the_store_is_measured_by_table_and_its_checkpoint_by_age(run: tuple[Daemon, Scraped]) -> None:
    daemon, found = run
    parts = {dict(labels)["part"] for name, labels in found.samples if name == "hippod_store_bytes"}
    tables = {path.stem for path in daemon.store.glob("*.lance")}
    assert {f"table {name}" for name in tables} <= parts
    assert {"checkpoint", "inbox", "log"} <= parts
    assert found.value("hippod_store_bytes", part="table passages") > 0
    assert found.value("hippod_checkpoint_timestamp_seconds") > 1.6e9
    assert found.value("hippod_source_last_scan_timestamp_seconds") > 1.6e9
    assert found.value("hippod_source_up", kind="folder") == 1
    assert found.value("hippod_disk_free_bytes") > 0


def test_queues_report_depth_and_limits(run: tuple[Daemon, Scraped]) -> None:
    found = run[1]
    for queue in ("inbox", "ready"):
        assert found.value("hippod_queue_depth", queue=queue) == 0
        assert found.value("hippod_queue_bytes", queue=queue) == 0
        assert found.value("hippod_queue_limit", queue=queue) > 0
        assert found.value("hippod_queue_limit_bytes", queue=queue) > 0
    assert found.value("hippod_ready") == 1


def test_no_document_content_is_in_the_log_or_metrics(run: tuple[Daemon, Scraped]) -> None:
    daemon = run[0]
    assert daemon.events("document_failed")
    assert daemon.events("passage_failed")
    assert daemon.events("committed")[0]["took_ms"] > 0
    assert CANARY.lower() not in daemon.log_text().lower()
    assert CANARY.lower() not in daemon.http.get("/metrics").text.lower()


# What is in examples/grafana only names what there is.


def expressions() -> list[tuple[str, str]]:
    """Where, and which PromQL, with Grafana's variables put in."""
    found = []
    dashboard = json.loads((GRAFANA / "hippod.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")
            found.append((f"panel {panel['title']!r}", text))
    for group in rules()["groups"]:
        found += [(f"alert {rule['alert']}", rule["expr"]) for rule in group["rules"]]
    return found


def rules() -> Any:
    return yaml.safe_load((GRAFANA / "alerts.yml").read_text())


def selectors(node: Any) -> Iterator[Any]:
    if isinstance(node, promql.VectorSelector):
        yield node
        return
    for name in ("expr", "lhs", "rhs", "vector_selector", "param", "vs"):
        child = getattr(node, name, None)
        if isinstance(child, promql.Expr):
            yield from selectors(child)
    for child in getattr(node, "args", None) or ():
        yield from selectors(child)


def names_in(text: str) -> set[str]:
    """Metric names, by a parser; checked against a plain search, so that no part of the tree is missed."""
    found = {str(each.name) for each in selectors(promql.parse(text))}
    plain = set(re.findall(r"\b(?:hippod|process|up)(?:_\w+)?\b(?!=)", re.sub(r'"[^"]*"', '""', text)))
    assert found == plain, (text, found, plain)
    return found


@pytest.mark.parametrize(("where", "text"), expressions(), ids=[where for where, _ in expressions()])
def test_alert_and_dashboard_expressions_use_only_existing_metrics_and_labels(
    run: tuple[Daemon, Scraped], where: str, text: str
) -> None:
    found = run[1]
    for name in names_in(text):
        assert name in found.names | PROMETHEUS_OWN, f"{where} names {name}, which hippod does not have"
    seen = {label for name in names_in(text) for label in found.labels.get(name, ())}
    if all(
        found.labels.get(name) for name in names_in(text)
    ):  # what never happened in this run has no sample to compare
        asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", text))
        asked |= {part.strip() for group in re.findall(r"\bby\s*\(([^)]*)\)", text) for part in group.split(",")}
        assert asked <= seen | TARGET_LABELS, (where, asked - seen)


DURATION = re.compile(r"(\d+[smhd])+")


def test_alert_rules_have_the_shape_that_prometheus_takes() -> None:
    document = rules()
    assert set(document) == {"groups"}
    names: list[str] = []
    for group in document["groups"]:
        assert set(group) <= {"name", "interval", "rules", "limit"}
        for rule in group["rules"]:
            assert set(rule) <= {"alert", "expr", "for", "keep_firing_for", "labels", "annotations"}, rule
            assert re.fullmatch(r"[A-Z]\w+", rule["alert"])
            assert DURATION.fullmatch(rule.get("for", "1m"))
            assert rule["labels"]["severity"] in ("info", "warning", "critical")
            assert set(rule["annotations"]) == {"summary", "action"}
            names.append(rule["alert"])
            templates = set(re.findall(r"\{\{\s*(.*?)\s*\}\}", json.dumps(rule["annotations"])))
            assert all(re.fullmatch(r"\$labels\.\w+", each) for each in templates), templates
    assert len(names) == len(set(names))


GROWN_OR_BORN = re.compile(
    r"(?P<sum>sum by \([^)]+\)) \(increase\((?P<counter>[^\[]+)\[(?P<time>\w+)\]\)\) (?P<bound>> \d+) "
    r"or (?P=sum) \((?P=counter) unless (?P=counter) offset (?P=time)\) (?P=bound)"
)
"""What a counter grew by, or all of it where it was not there when the time began: its first count makes the series, and
`increase` of one that is born at 1 is 0."""


def test_increase_alerts_also_fire_for_new_counters() -> None:
    expressions_by_alert = {
        rule["alert"]: rule["expr"] for rule in rules()["groups"][0]["rules"] if "increase(" in rule["expr"]
    }
    assert {"HippodInternalErrors", "HippodDocumentsFail", "HippodWrongTokens"} <= set(expressions_by_alert)
    for alert, text in expressions_by_alert.items():
        assert GROWN_OR_BORN.fullmatch(text), (alert, text)
        tree = promql.parse(text)
        assert isinstance(tree, promql.BinaryExpr)
        assert isinstance(tree.lhs, promql.BinaryExpr) and isinstance(tree.rhs, promql.BinaryExpr)
        assert (str(tree.op), str(tree.lhs.op), str(tree.rhs.op)) == ("or", ">", ">"), alert


@pytest.mark.parametrize("rule", rules()["groups"][0]["rules"], ids=lambda rule: str(rule["alert"]))
def test_alert_texts_use_only_labels_that_their_expression_keeps(
    run: tuple[Daemon, Scraped], rule: Mapping[str, Any]
) -> None:
    spoken = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
    kept = re.findall(r"\bby\s*\(([^)]*)\)", rule["expr"])
    left = {part.strip() for group in kept for part in group.split(",")} if kept else None
    if left is None:
        left = set(TARGET_LABELS)
        for name in names_in(rule["expr"]):
            left |= run[1].labels.get(name, set()) or {"topic", "partition"}
    assert spoken <= left, spoken - left


def test_the_dashboard_has_the_shape_that_grafana_takes() -> None:
    dashboard = json.loads((GRAFANA / "hippod.json").read_text())
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= set(dashboard)
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["targets"]
            assert panel["datasource"]["uid"] == "${datasource}"
            for target in panel["targets"]:
                legends = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                by = re.findall(r"by\s*\(([^)]*)\)", target["expr"])
                if by:
                    assert legends <= {part.strip() for group in by for part in group.split(",")}, target


def test_grafana_readme_lists_every_metric(run: tuple[Daemon, Scraped]) -> None:
    listed = set(re.findall(r"^\| `(hippod_\w+)` \|", (GRAFANA / "README.md").read_text(), re.MULTILINE))
    types = run[1].types
    there = {
        name + ("_total" if kind == "counter" else "") for name, kind in types.items() if name.startswith("hippod_")
    }
    assert sorted(there - listed) == [], "add a row to examples/grafana/README.md"
    assert sorted(listed - there) == []


def test_metrics_are_served_before_the_memory_is_open(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path).launch()
    try:

        def text() -> str:
            try:
                return daemon.http.get("/metrics").text
            except httpx2.TransportError:
                return ""

        assert "hippod_ready" in until(text, "the socket answers", pause_s=0.01)
    finally:
        daemon.close()
