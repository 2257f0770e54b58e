"""The questions over conversations: which turns answer one, and where these stand in what is written for the daemon."""

import json
from pathlib import Path
from typing import Any

from bench.support.questions.drives import DEVELOPMENT_CONVERSATIONS, cross_lingual_questions, write_conversations
from daemon.contract.query import RankedPassage


def conversation(number: int) -> dict[str, Any]:
    said = [("Ada", "The kiln is warm."), ("Bo", "I baked bread!"), ("Ada", "Then we eat.")]
    turns = [{"speaker": who, "dia_id": f"D1:{at}", "text": text} for at, (who, text) in enumerate(said, 1)]
    asked = [
        {"question": f"What is warm {number}?", "evidence": ["D1:1"], "category": 4},
        {"question": "What do they do?", "evidence": ["D1:2; D1:3"], "category": 1},
        {"question": "Who flew?", "evidence": ["D1:1"], "category": 5},
        {"question": "What is not there?", "evidence": ["D7:1"], "category": 1},
    ]
    return {"conversation": {"session_1": turns, "session_1_date_time": "1 May"}, "qa": asked}


def passage(text: str) -> RankedPassage:
    return RankedPassage(rank=0, score=1.0, id="p", title="", text=text, document="d", location={})


def test_evidence_of_questions_names_the_turns_of_their_conversation(tmp_path: Path) -> None:
    source = tmp_path / "all.json"
    source.write_text(json.dumps([conversation(number) for number in range(DEVELOPMENT_CONVERSATIONS + 2)]))
    questions = write_conversations(source, tmp_path / "drive")
    assert len(questions) == 2 * DEVELOPMENT_CONVERSATIONS, "the others are held out"
    one, several = questions[:2]
    assert (one.kind, one.gold, several.kind, several.gold) == ("one turn", 1, "several turns", 2)
    text = (tmp_path / "drive" / one.scope / "session_1.md").read_text()
    assert text.splitlines()[0] == "# Conversation on 1 May"
    half, whole = (passage(part) for part in (text.partition("Then")[0], text))
    assert several.found([half]) == 1
    assert several.found([whole]) == several.found([half, whole]) == 2


def test_english_questions_are_asked_of_the_pages_in_another_language(tmp_path: Path) -> None:
    asked = [
        {"id": 1, "language": "en", "question": "Where is it?", "gold": ["en/a.md"]},
        {"id": 1, "language": "de", "question": "Wo ist es?", "gold": ["de/ä.md"]},
        {"id": 2, "language": "de", "question": "Wer?", "gold": ["de/b.md"]},
    ]
    file = tmp_path / "questions.json"
    file.write_text(json.dumps(asked))
    [question] = cross_lingual_questions(file, "de")
    assert (question.text, question.scope, question.gold) == ("Where is it?", "de", 1)
    assert question.inner.documents == {"de/ä.md"}
