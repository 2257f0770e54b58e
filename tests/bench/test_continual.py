"""The draw of `bench continual`: fixed, complete, and with all that the first segment's questions need in it."""

from typing import Any

import pytest

from bench.sections.quality.continual import gold_documents
from bench.support.questions.draw import draw

GOLD = {question: frozenset({question, question + 10, 30}) for question in range(10)}


@pytest.mark.parametrize("count", [2, 4, 5])
def test_draw_is_reproducible_complete_and_balanced(count: int) -> None:
    segments = draw(GOLD, 50, count)
    assert segments == draw(GOLD, 50, count)
    assert segments != draw(GOLD, 50, count, seed=1)
    assert sorted(at for each in segments for at in each.questions) == list(range(10))
    assert sorted(at for each in segments for at in each.documents) == list(range(50))
    sizes = [len(each.documents) for each in segments]
    assert max(sizes) - min(sizes) <= 1
    assert max(len(each.questions) for each in segments) - min(len(each.questions) for each in segments) <= 1
    needed = frozenset().union(*(GOLD[at] for at in segments[0].questions))
    assert needed <= set(segments[0].documents)


def test_gold_is_found_in_the_format_of_each_dataset() -> None:
    corpus = [{"title": title, "text": f"About {title}."} for title in ("A", "B", "C")]
    paragraphs = [
        {"title": title, "text": f"About  {title}.", "is_supporting": title != "B"} for title in ("A", "B", "C")
    ]
    questions: list[dict[str, Any]] = [
        {"question": "musique?", "paragraphs": paragraphs},
        {"question": "nq?", "reference": ["x"], "contexts": paragraphs[1:]},
        {
            "question": "hotpotqa?",
            "supporting_facts": [["B", 0]],
            "context": [["A", ["About A."]], ["B", ["About", "B."]]],
        },
    ]
    # The supporting ones of A (0), B (1) and C (2): A and C; C; B.
    assert gold_documents(corpus, questions) == {0: {0, 2}, 1: {2}, 2: {1}}
