"""An answer that is only printed is read without the contract's models, and means the same."""

from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel
from rich.text import Text

from cli.client.plain_answers import OPTIONAL, from_plain
from cli.errors import CommandError
from cli.render.query import query_lines
from cli.render.status import status_lines
from daemon.contract.query import QueryResponse
from daemon.contract.status import Event, Status
from tests.cli.sample_answers import QUERY, STATUS


def models(kind: Any) -> set[type[BaseModel]]:
    """The type and those of its fields, at any depth."""
    if isinstance(kind, type) and issubclass(kind, BaseModel) and get_origin(kind) is None:
        return {kind}.union(*(models(field.annotation) for field in kind.model_fields.values()))
    return set().union(*(models(part) for part in get_args(kind)))


@pytest.mark.parametrize("kind", [QueryResponse, Status, Event])
def test_fields_omitted_by_the_daemon_are_listed_as_optional(kind: type[BaseModel]) -> None:
    left_out = {
        name
        for model in models(kind)
        for name, field in model.model_fields.items()
        if not field.is_required() and getattr(field, "exclude_if", None) is not None
    }
    printed_nowhere = {
        "synonym_recall",
        "indistinct_phrases",
        "languages",
        "encoder_advice",
        "extractor_advice",
        "cost",
    }
    assert left_out - printed_nowhere <= set(OPTIONAL)


def plain(lines: list[Text]) -> list[str]:
    return [line.plain for line in lines]


def test_plain_answer_prints_the_same_lines_as_the_contract_model() -> None:
    found = from_plain(lambda answer: query_lines(answer, 80), QUERY)
    assert plain(found) == plain(query_lines(QueryResponse(**QUERY), 80))
    assert plain(from_plain(status_lines, STATUS)) == plain(status_lines(Status(**STATUS)))


@pytest.mark.parametrize(("state", "said"), [("starting", False), ("ready", True)])
def test_status_reports_no_sources_only_after_the_start(state: str, said: bool) -> None:
    lines = plain(from_plain(status_lines, STATUS | {"sources": [], "state": state}))
    assert any("no sources are followed" in line for line in lines) is said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({key: value for key, value in STATUS.items() if key != "phrases"}, "not understood: phrases"),
        (STATUS | {"edges": {"relation": 1}}, "not understood: context"),
        (STATUS | {"documents": "many"}, "not understood: "),
        (STATUS | {"sources": [17]}, "not understood: "),
    ],
)
def test_malformed_answer_is_an_error_that_names_the_field(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        from_plain(status_lines, wrong)
