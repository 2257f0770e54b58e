"""Questions over drives of documents that people wrote: a company's handbook, a vault of help pages, conversations.

Each set is read from a folder that an environment variable names; a missing set is omitted.
"""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.evaluation.questions import EvalQuestion
from daemon.contract.query import RankedPassage

DEVELOPMENT_CONVERSATIONS = 5
"""Number of LoCoMo's ten conversations used for development; the remaining conversations are held out."""
ADVERSARIAL = 5
"""LoCoMo's category of questions that the conversation does not answer."""
_EVIDENCE = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True)
class DriveQuestion:
    """A question, its `kind`, and the documents or turns that answer it. `scope` is a folder of the drive."""

    inner: EvalQuestion
    kind: str
    scope: str = ""

    @property
    def text(self) -> str:
        return self.inner.text

    @property
    def gold(self) -> int:
        return self.inner.gold

    def found(self, ranked: Sequence[RankedPassage]) -> int:
        return self.inner.found(ranked)


@dataclass(frozen=True, slots=True)
class TurnQuestion:
    """A question about a conversation. The gold items are turns of the conversation; a turn is found if the text of a passage
    contains it."""

    text: str
    turns: tuple[str, ...]
    scope: str

    @property
    def kind(self) -> str:
        return "one turn" if self.gold == 1 else "several turns"

    @property
    def gold(self) -> int:
        return len(self.turns)

    def found(self, ranked: Sequence[RankedPassage]) -> int:
        texts = [_plain(passage.text) for passage in ranked]
        return sum(any(turn in text for text in texts) for turn in self.turns)


def place(name: str, default: Path) -> Path:
    """Returns the path of a set: `HIPPOD_BENCH_<NAME>`, or `default`."""
    return Path(os.environ.get(f"HIPPOD_BENCH_{name.upper()}", default))


def handbook_questions(path: Path) -> list[DriveQuestion]:
    """Returns the questions over the handbook; `kind`: the gold is one page, several linked pages, or several unlinked
    pages."""
    kinds = {None: "one page", True: "several pages, linked", False: "several pages, not linked"}
    return [
        DriveQuestion(EvalQuestion(each["question"], documents=frozenset(each["gold"])), kinds[each["linked"]])
        for each in json.loads(path.read_text("utf-8"))
    ]


def vault_questions(path: Path, language: str) -> list[DriveQuestion]:
    """Returns the vault's questions in one language, each asked of the pages in that language."""
    return [
        DriveQuestion(
            EvalQuestion(each["question"], documents=frozenset(each["gold"])),
            "one page" if len(each["gold"]) == 1 else "two pages",
            language,
        )
        for each in json.loads(path.read_text("utf-8"))
        if each["language"] == language
    ]


def cross_lingual_questions(path: Path, language: str) -> list[DriveQuestion]:
    """Returns the vault's English questions, asked of the pages in another language. A question has one `id` in all
    languages."""
    entries = json.loads(path.read_text("utf-8"))
    english = {each["id"]: each["question"] for each in entries if each["language"] == "en"}
    return [
        DriveQuestion(
            EvalQuestion(english[each["id"]], documents=frozenset(each["gold"])),
            "one page" if len(each["gold"]) == 1 else "two pages",
            language,
        )
        for each in entries
        if each["language"] == language and each["id"] in english
    ]


def write_conversations(path: Path, drive: Path) -> list[TurnQuestion]:
    """Writes LoCoMo's development conversations as one document per session; returns the questions that have evidence."""
    questions = []
    for number, entry in enumerate(json.loads(path.read_text("utf-8"))[:DEVELOPMENT_CONVERSATIONS]):
        folder = drive / f"conversation{number}"
        folder.mkdir(parents=True, exist_ok=True)
        turns: dict[str, str] = {}
        for name, session in entry["conversation"].items():
            if not re.fullmatch(r"session_\d+", name):
                continue
            date = entry["conversation"].get(f"{name}_date_time", "")
            lines = [f"# Conversation on {date}", *(f"{turn['speaker']}: {_said(turn)}" for turn in session)]
            (folder / f"{name}.md").write_text("\n\n".join(lines), "utf-8")
            turns |= {turn["dia_id"]: _plain(_said(turn)) for turn in session}
        for asked in entry["qa"]:
            named = _EVIDENCE.findall(" ".join(asked.get("evidence", ())))
            gold = tuple(turns[each] for each in dict.fromkeys(named) if each in turns)
            if gold and asked["category"] != ADVERSARIAL:
                questions.append(TurnQuestion(asked["question"], gold, folder.name))
    return questions


def _said(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} (shares a photo: {caption})" if caption else str(turn["text"])


def _plain(text: str) -> str:
    """Returns letters and digits only, because a parser may change other characters."""
    return " ".join(re.findall(r"\w+", text.casefold()))
