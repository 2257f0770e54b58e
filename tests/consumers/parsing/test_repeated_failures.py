"""Many documents of one file that fail for one cause are one problem; what can be read is read."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.parsing import ParseSummary, parse_file
from consumers.parsing.repeated_failures import CAUSES, LISTED, with_summarised_failures
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

S = SplitSettings(400, 40)


def parsed(path: Path, content: str) -> list[ParsedDocument]:
    path.write_text(content)
    *documents, summary = parse_file(bytes(path), "u", S)
    assert isinstance(summary, ParseSummary)
    return [each for each in documents if isinstance(each, ParsedDocument)]


def good(number: int) -> str:
    return json.dumps({"id": f"good{number}", "text": f"words {number}"})


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('{"body": "no text"}', '"text" is missing; it must be a string (line-1, line-3, line-5, …)'),
        ('{"id": "x%d", "text": 5}', '"text" must be a string, not a number (x0, x1, x2, …)'),
        ("%d, broken", "line 1: not JSON at column"),
        ('{"text": " "}', '"text" is blank'),
    ],
    ids=["no text", "named by themselves", "not JSON", "blank"],
)
def test_many_lines_that_fail_alike_are_one_problem_with_a_count(tmp_path: Path, bad: str, reason: str) -> None:
    lines = [line for n in range(2_000) for line in (bad.replace("%d", str(n)), good(n))]
    *read, problem = parsed(tmp_path / "a.jsonl", "\n".join(lines))
    assert [each.uri for each in read] == [f"u#good{n}" for n in range(2_000)]
    assert (problem.uri, problem.title, problem.skipped) == ("u", "a", "blank" in reason)
    assert (problem.error or "").startswith(f"2,000 of its documents are not read: {reason}")


def test_failures_of_a_json_list_are_summarised_by_cause(tmp_path: Path) -> None:
    values = (
        [{"text": 5}] * 30 + [{"text": "x", "title": 7}] * 40 + [{"text": "fine"}] + [{"text": "x", "url": []}] * LISTED
    )
    documents = parsed(tmp_path / "a.json", json.dumps(values))
    assert [each.uri for each in documents if each.error is None] == ["u#70"]
    assert [each.uri for each in documents[1:-1]] == [f"u#{n}" for n in range(71, 71 + LISTED)], "few are listed"
    first, second = (documents[-1].error or "").split("; 30 ")
    assert first.startswith('40 of its documents are not read: "title"') and second.startswith(
        "of its documents are not read"
    )


def test_number_of_distinguished_failure_causes_is_limited() -> None:
    failures = [ParsedDocument(f"u#{n}", error=f"cause {chr(65 + n % 26)}{chr(97 + n // 26 % 26)}") for n in range(676)]
    found = [each for each in with_summarised_failures(failures, "u", "") if isinstance(each, ParsedDocument)]
    assert len(found) == CAUSES + 1
    assert (found[-1].error or "").startswith(f"{676 - CAUSES} of its documents are not read: other reasons, such as")


LINES = st.lists(st.tuples(st.sampled_from(("good", "bad", "worse")), st.integers(0, 20)), max_size=4 * LISTED)


@given(lines=LINES)
def test_later_of_two_lines_with_one_id_wins(lines: list[tuple[str, int]]) -> None:
    """As if nothing were summarised, apart from the failures that are."""
    found = [
        ParsedDocument(f"u#{n}", title=str(at), error=None if kind == "good" else f"{kind} {n}")
        for at, (kind, n) in enumerate(lines)
    ]
    out = [each for each in with_summarised_failures(found, "u", "") if isinstance(each, ParsedDocument)]
    kept = {each.uri: each.error is None for each in out}
    expected = {each.uri: each.error is None for each in found}
    for uri, is_good in expected.items():
        assert kept.get(uri, True) == is_good or "u" in kept
        if is_good:
            assert kept[uri]
    failed = [kind for kind, _ in lines if kind != "good"]
    assert ("u" in kept) <= any(failed.count(kind) > LISTED for kind in failed)
