"""`query --explain` says of each passage what brought it there; `--set` changes settings for one command."""

import json
from pathlib import Path

import pytest

from daemon.contract.query import (
    Explanation,
    LedByLink,
    PassageExplanation,
    PassageReference,
    PassageShare,
    PathStep,
    PhraseShare,
    StatedTriple,
)
from daemon.contract.query import StrongestPath as Way
from tests.cli.render.test_output import CONTROL, HOSTILE
from tests.cli.sample_answers import QUERY, answer, passage, plain
from tests.cli.scripted_daemon import Scripted, Shell

pytestmark = pytest.mark.process


def reason(text: str = "emil strand", title: str = "Minutes") -> PassageExplanation:
    minutes = PassageReference(id="2" * 32, title=title, document="file:///drive/minutes.md")
    built = StatedTriple(subject=text, predicate="built", object="rain gauge", passages=[minutes])
    return PassageExplanation(
        rank=1,
        id=f"{1:032x}",
        similarity=0.6123,
        own_share=0.34,
        seeds=[PhraseShare(phrase=text, share=0.5), PhraseShare(phrase="tea", share=0.001)],
        other_share=0.159,
        others=[PassageShare(share=0.12, **minutes.model_dump())],
        path=Way(
            share=0.25,
            steps=[
                PathStep(kind="phrase", text="e strand"),
                PathStep(kind="phrase", text=text, edge="synonym", weight=0.91),
                PathStep(kind="phrase", text="rain gauge", edge="relation", weight=1.0, triples=[built]),
                PathStep(kind="passage", text="Emil Strand", id=f"{1:032x}", edge="context", weight=1.0),
            ],
        ),
    )


def explained(**named: str) -> dict[str, object]:
    return answer(
        passage(1, "Emil Strand", "Emil Strand built the rain gauge in 1974."),
        explain=Explanation(stages_ms={"walk": 3.25, "encode": 7.0}, passages=[reason(**named)]),
    )


def test_explanation_names_near_duplicates_and_hub_damping(hippoctl: Shell, scripted: Scripted) -> None:
    damped = reason().model_copy(update={"hub_factor": 0.12, "near_duplicate_of": "3" * 32, "group_size": 401})
    found = passage(1, "Emil Strand", "Emil Strand built the rain gauge in 1974.")
    scripted.answers["POST /v1/query"] = answer(found, explain=Explanation(passages=[damped]))
    out = " ".join(hippoctl("query", "--explain", "Who built it?").out.split())
    assert "one of 401 near-duplicates, which share one score" in out
    assert "damped as a hub: keeps 12 % of what comes from others" in out


def test_explanation_names_the_link_that_led_to_a_passage(hippoctl: Shell, scripted: Scripted) -> None:
    source = PassageReference(id="4" * 32, title="Who owns what", document="file:///drive/owners.md")
    link = LedByLink(source=source, target="file:///drive/team.md", text="the team")
    led = PassageExplanation(rank=1, id=f"{1:032x}", similarity=0.31, link=link)
    found = passage(1, "Emil Strand", "Emil Strand built the rain gauge in 1974.")
    scripted.answers["POST /v1/query"] = answer(found, explain=Explanation(passages=[led]))
    out = " ".join(hippoctl("query", "--explain", "Who built it?").out.split())
    assert "why similarity 0.310 · linked “the team” from Who owns what" in out


def test_explanation_shows_score_parts_and_the_strongest_path(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["POST /v1/query"] = explained()
    out = " ".join(hippoctl("query", "--explain", "Who built it?").out.split())
    assert scripted.asked[0].body == {"query": "Who built it?", "k": 5, "explain": True}
    assert (
        "why similarity 0.612 · 34 % from the passage itself · 50 % from “emil strand” · 16 % from other passages (Minutes) "
        "path e strand ≈ 0.91 ≈ emil strand — built (Minutes) → rain gauge in Emil Strand 25 % of the score"
    ) in out
    assert "Time encode 7.0 ms · walk 3.2 ms" in out


def test_json_output_contains_the_daemons_explanation(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["POST /v1/query"] = explained()
    shown = hippoctl("--json", "query", "--explain", "Who built it?").json
    assert shown["explain"]["passages"] == [plain(reason())]


def test_explanation_contains_no_control_characters(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["POST /v1/query"] = explained(text=HOSTILE, title=HOSTILE)
    assert not CONTROL.search(hippoctl("query", "--explain", "Who built it?").out)


def test_set_option_sends_numbers_and_booleans(hippoctl: Shell, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers["POST /v1/query"] = QUERY
    arguments = ["--set", "passage_weight=0.1", "--set", "passage_nodes=false", "--set", "top_triples=7"]
    wanted = {"passage_weight": 0.1, "passage_nodes": False, "top_triples": 7}
    hippoctl("query", "who?", *arguments)
    assert scripted.asked[0].body == {"query": "who?", "k": 5, "settings": wanted}
    (tmp_path / "q.json").write_text(json.dumps([{"question": "who?", "documents": ["a.md"]}]))
    scripted.answers["GET /v1/documents"] = {"documents": []}
    assert hippoctl("eval", str(tmp_path / "q.json"), *arguments).code == 0
    assert scripted.asked[-1].body == {"query": "who?", "k": 10, "settings": wanted}


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("damping", "is not KEY=VALUE"),
        ("=1", "is not KEY=VALUE"),
        ("damp=1", "is not a setting; the settings are top_triples"),
        ("damping=2", "damping: input should be less than or equal to 0.99"),
        ("passage_nodes=perhaps", "passage_nodes: input should be a valid boolean"),
        ("top_triples=1.5", "top_triples: input should be a valid integer"),
    ],
)
def test_invalid_setting_is_a_usage_error(hippoctl: Shell, scripted: Scripted, pair: str, said: str) -> None:
    ended = hippoctl("query", "who?", "--set", pair)
    assert ended.code == 2
    assert said in ended.err
    assert not scripted.asked
