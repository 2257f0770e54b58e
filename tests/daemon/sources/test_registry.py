"""A kind of source is declared once: configuration, doctor, API and docs use its declaration."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from daemon.api.openapi import OTHER_MODELS
from daemon.config import Config
from daemon.contract.finding import Finding
from daemon.contract.status import SourceStatus
from daemon.sources.base import SourceKind
from daemon.sources.registry import SOURCE_KINDS

ROOT = Path(__file__).parents[3]
KINDS = pytest.mark.parametrize("kind", SOURCE_KINDS, ids=lambda kind: kind.table)


@KINDS
def test_configuration_has_a_table_for_each_source_kind(kind: SourceKind[Any]) -> None:
    assert Config().tables(kind) == ()
    assert f"[[{kind.table}]]" in (ROOT / "config.toml").read_text()


@KINDS
def test_every_status_field_of_a_source_kind_is_documented(kind: SourceKind[Any]) -> None:
    assert issubclass(kind.status, SourceStatus)
    assert kind.status in OTHER_MODELS  # and so in GET /openapi.json
    [line] = [
        line
        for line in (ROOT / "docs" / "how-to" / "operations.md").read_text().splitlines()
        if line.startswith(f"| `{kind.table}` ")
    ]
    own = set(kind.status.model_fields) - set(SourceStatus.model_fields)
    assert [name for name in own if f"`{name}`" not in line] == []


@KINDS
def test_source_kind_without_tables_has_no_conflicts_and_no_findings(kind: SourceKind[Any]) -> None:
    assert kind.conflicts((), {"store.path": ROOT}) == []
    assert list(kind.inspect(())) == []


def test_doctor_reports_findings_of_each_source_kind_even_if_one_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    from daemon import doctor

    def fails(_tables: Sequence[Any]) -> Iterator[Any]:
        raise RuntimeError("no such thing")

    def finds(_tables: Sequence[Any]) -> Iterator[Any]:
        yield Finding("other", "ok", "looked at")

    first, *_ = SOURCE_KINDS
    one = SourceKind(first.table, first.section, first.status, first.make, first.conflicts, first.claims, fails)
    other = SourceKind(first.table, first.section, first.status, first.make, first.conflicts, first.claims, finds)
    monkeypatch.setattr(doctor, "CHECKS", ())
    monkeypatch.setattr(doctor, "SOURCE_KINDS", (one, other))
    found = list(doctor.inspect_config(Config()))
    assert [(each.name, each.status) for each in found] == [(first.table, "warn"), ("other", "ok")]
