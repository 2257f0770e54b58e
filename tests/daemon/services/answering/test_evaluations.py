"""Whole evaluations against a scripted model: every figure below is worked out by hand in the comment beside it."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.daemon.services.answering.conftest import Asking
from tests.memory.llm.model_server import Script, obedient

pytestmark = pytest.mark.daemon

PAYS, FORGED, GROWN, DARK = (
    "Who pays for the flame?",
    "Who forged the lantern?",
    "Where is tea grown?",
    "Who fears dark?",
)
QUESTIONS = [
    {"question": PAYS, "documents": ["added:Ledger"], "answer": ["Ottilie Brandel", "the Brandel family"]},
    {"question": FORGED, "documents": ["added:Lantern"], "answer": "Edda Vance"},
    {"question": GROWN, "documents": ["added:Tea"], "answer": "on the terraces of Sarn"},
    {"question": DARK, "answer": "nobody"},
]
WITH_PASSAGES = {PAYS: "Ottilie", FORGED: "The Edda Vance.", GROWN: "terraces, in Sarn", DARK: None}
BY_HEART = {PAYS: "the king", FORGED: "a smith", GROWN: "in China", DARK: None}


def answering(closed: Mapping[str, str | None], open_: Mapping[str, str | None]) -> Script:
    """A model with these short answers, without passages and with them; None abstains."""

    def script(call: Any) -> Any:
        if call.purpose != "answer":
            return obedient(call)
        asked = call.passage.rpartition("\n\n")[2].partition(": ")[2]
        said = (open_ if "«passage 1»" in call.passage else closed)[asked]
        return {
            "found": said is not None,
            "sentences": [{"text": "So it is.", "sources": []}],
            "short": said or "",
        }

    return script


def evaluate(asking: Asking, questions: Any, *arguments: str) -> Any:
    (asking.daemon.home / "evaluated.json").write_text(json.dumps(questions))
    ran = asking.daemon.ctl("--json", "eval", "evaluated.json", *arguments)
    assert ran.code == 0, ran.err
    return ran.json


def test_evaluation_compares_em_f1_and_abstention_with_a_run_without_retrieval(asking: Asking) -> None:
    asking.model.script = answering(BY_HEART, WITH_PASSAGES)
    arguments = ["--answers", "--compare", "bm25,none", "--k", "1", "--read", "2"]
    whole = evaluate(asking, QUESTIONS, *arguments)
    bm25, none = whole["modes"]
    # bm25. PAYS: "ottilie" against "ottilie brandel": precision 1, recall 1/2, F1 2/3. FORGED: article and stop go, EM 1.
    # GROWN: {terraces, in, sarn} against {on, terraces, of, sarn}: 2 shared, F1 2·2/(3+4) = 4/7. DARK: abstained, 0.
    scores = [(each["em"], each["f1"]) for each in bm25["answers"]["questions"]]
    assert scores == [(0.0, 0.666667), (1.0, 1.0), (0.0, 0.571429), (0.0, 0.0)]
    assert (bm25["answers"]["em"], bm25["answers"]["f1"]) == (0.25, 0.5595)  # 1/4; (2/3 + 1 + 4/7) / 4
    assert (bm25["answers"]["n"], bm25["answers"]["abstained"], bm25["answers"]["failed"]) == (4, 1, 0)
    assert [each["found"] for each in bm25["answers"]["questions"]] == [True, True, True, False]
    # Each question shares its rare words with its own passage alone; the fourth has no gold.
    assert (bm25["n"], bm25["gold"], bm25["recall"]) == (4, 3, {"1": 1.0})
    assert (none["mode"], none["gold"], none["recall"], none["answers"]["em"]) == ("none", 3, {}, 0.0)
    assert none["answers"]["abstained"] == 1
    # One call each; the scripted server counts 11 + 7 tokens for a streamed answer.
    assert bm25["cost"] == none["cost"] == {"calls": 1.0, "prompt_tokens": 11.0, "completion_tokens": 7.0}
    # none - bm25, EM: 0, -1, 0, 0: one pair differs, so both signs are as far from 0: p = 1. F1: three of four differ,
    # 16 sign patterns of which 2 · 2 (the zero's sign changes nothing) are as far: p = 4/16.
    em, f1 = whole["differences"]
    assert (em["measure"], em["mode"], em["baseline"], em["n"]) == ("em", "none", "bm25", 4)
    assert (em["difference"], em["low"], em["high"], em["p"]) == (-0.25, -0.75, 0.0, 1.0)
    assert (f1["difference"], f1["p"]) == (-0.5595, 0.25)
    assert f1["low"] < f1["difference"] < f1["high"] <= 0
    shown = asking.daemon.ctl("eval", "evaluated.json", *arguments).out.splitlines()
    assert shown[0].split() == ["mode", "recall@1", "all@1", "EM", "F1", "p50", "p95", "calls", "tokens"]
    assert shown[2].split()[:5] == ["none", "–", "–", "0.0000", "0.0000"]
    assert "4 questions, 3 with known gold" in shown
    assert sum("1 question not answered: the model abstained" in line for line in shown) == 2


def test_claims_and_claim_pairs_are_scored_by_accuracy(asking: Asking) -> None:
    claims = [
        {"true_claim": "Edda Vance forged the lantern.", "false_claim": "Joss Merin forged the lantern."},
        {"true_claim": "Tea grows at Sarn.", "false_claim": "Tea grows in Corl Tower."},
        {"claim": "The tower was sold.", "label": "consistent"},
        {"claim": "The sale was secret.", "type": "true", "index": 7},
    ]
    said = {
        "Edda Vance forged the lantern.": "true", "Joss Merin forged the lantern.": "False.", "Tea grows at Sarn.": "true",
        "Tea grows in Corl Tower.": "true", "The tower was sold.": None,
        "The sale was secret.": "true",
    }  # fmt: skip
    asking.model.script = answering({}, said)
    answers = evaluate(asking, claims, "--answers", "--filter", "none")["answers"]
    # Right: both of the first pair, the first of the second pair; the fifth abstains and counts as wrong; the last is right,
    # and alone with its index, so that it makes no pair. 4 of 6; 1 of 2 pairs.
    assert answers["claims"] == {"n": 6, "accuracy": 0.6667, "pairs": 2, "pair_accuracy": 0.5}
    assert [each["correct"] for each in answers["questions"]] == [True, True, True, False, False, True]
    assert (answers["abstained"], "em" in answers) == (1, False)
    assert all("Claim: " in call.passage for call in asking.model.calls)


def test_iterative_answers_have_the_recall_of_all_their_steps(asking: Asking) -> None:
    questions = [
        {"question": "Who forged the lantern?", "documents": ["added:Lantern", "added:Workshop"], "answer": "so"},
        {"question": "Where is tea grown?", "documents": ["added:Tea", "added:Sale"], "answer": "Sarn"},
    ]
    thoughts = {
        "Who forged the lantern?": "Workshop: left her workshop to her pupil Joss Merin",
        "Where is tea grown?": "Wedding: Joss Merin married Ottilie",
    }

    def script(call: Any) -> Any:
        if call.purpose == "thought":
            asked = call.body["messages"][-1]["content"].rpartition("Question: ")[2].partition("\n")[0]
            return {"thought": thoughts[asked], "sources": [1], "answers": False}
        return obedient(call)  # the short answer is "so"

    asking.model.script = script
    found = evaluate(asking, questions, "--steps", "2", "--mode", "bm25", "--k", "1,2", "--read", "2")
    # Each step's best passage has share 1; the first step's comes first. First question: Lantern, Workshop: 1/2, then 2/2.
    # Second: Tea, Wedding: 1/2, then still 1/2.
    assert found["recall"] == {"1": 0.5, "2": 0.75}
    assert found["all"] == {"1": 0.0, "2": 0.5}
    assert (found["answers"]["em"], found["answers"]["f1"]) == (0.5, 0.5)
    assert (found["answers"]["answerer"], found["answers"]["calls"]) == ("iterative", 2.0)
    assert found["cost"]["calls"] == 2.0
    alone = evaluate(asking, questions, "--mode", "bm25", "--k", "2")
    assert alone["recall"] == {"2": 0.5}, "one retrieval finds neither second passage"


def test_eval_options_without_effect_are_refused(asking: Asking) -> None:
    (asking.daemon.home / "evaluated.json").write_text(json.dumps(QUESTIONS))
    for arguments in (
        ("--mode", "none"), ("--compare", "bm25,none"), ("--length", "300"),
        ("--answers", "--mode", "none", "--filter", "none"), ("--steps", "2", "--mode", "none"),
        ("--answerer", "deep", "--mode", "dense"), ("--answerer", "single", "--steps", "2"),
    ):  # fmt: skip
        assert asking.daemon.ctl("eval", "evaluated.json", *arguments).code == 2, arguments
    (asking.daemon.home / "evaluated.json").write_text(json.dumps(QUESTIONS[3:]))
    ran = asking.daemon.ctl("eval", "evaluated.json")
    assert (ran.code, "none of the questions names gold" in ran.err) == (1, True)


def test_deep_evaluation_has_its_own_recall_and_scores_per_step(asking: Asking) -> None:
    questions = [{"question": FORGED, "documents": ["added:Lantern", "added:Nowhere"], "answer": "so"}]
    arguments = ["--answerer", "deep", "--steps", "1", "--forced", "--each-step", "--k", "1,50"]
    found = evaluate(asking, questions, *arguments)
    [score], steps = found["questions"], found["answers"]["steps"]
    assert [step["step"] for step in steps] == [0, 1]
    # One gold document of two is in the memory; the answers are written from passages with it.
    assert (found["gold_absent"], found["recall"]["50"], steps[0]["recall"]["50"], steps[1]["recall"]["50"]) == (
        1,
        0.5,
        0.5,
        0.5,
    )
    assert "added:Lantern" in score["retrieved"]
    assert found["took_ms"]["p50"] == score["took_ms"]
    # Step 0 is written from the passages for the question: one call to evolve (and one to merge, with two points), one answer.
    evolved = asking.purposes.index("answer")
    assert steps[0]["calls"] == evolved + 1
    # The last step's calls are all but the answer after step 0.
    assert steps[1]["calls"] == len(asking.purposes) - 1 == found["answers"]["calls"] - 1
    assert (steps[1]["em"], steps[1]["f1"]) == (1.0, 1.0)


def test_recall_of_one_iterative_step_equals_that_of_a_query(asking: Asking) -> None:
    questions = [{"question": FORGED, "documents": ["added:Tower", "added:Tea", "added:Sale"], "answer": "so"}]
    alone = evaluate(asking, questions, "--mode", "bm25", "--k", "1,2,10")
    stepped = evaluate(asking, questions, "--mode", "bm25", "--k", "1,2,10", "--steps", "1", "--read", "1")
    assert stepped["recall"] == alone["recall"]
    assert stepped["questions"][0]["retrieved"] == alone["questions"][0]["retrieved"]
    assert len(alone["questions"][0]["retrieved"]) > 1
