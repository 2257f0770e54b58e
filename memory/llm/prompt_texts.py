"""The prompts' texts: each stands beside the code that sends it, and a file may put another in its place.

A file has what the model is to do. hippod adds what keeps an answer readable and material apart from orders: the warning about
quoted text, and the JSON that is wanted. Files are read and checked once, at the start.
"""

from collections.abc import Mapping
from pathlib import Path

PROMPTS: Mapping[str, str] = {
    "entities": "OpenIE, first call: the named entities of a passage.",
    "triples": "OpenIE, second call: triples that start from those entities.",
    "query-entities": "The named entities of a query.",
    "recognition-memory": "Which of the linked triples matter to the query.",
    "answer": "The answer from passages.",
    "thought": "The next thought of `ask --steps`.",
    "judge": "A deep question: whether the points suffice, and what is missing.",
    "subquery": "A deep question: the subquery for one concern.",
    "evolve": "A deep question: which points change and which are new.",
    "merge": "A deep question: which points become one.",
    "score": "`eval --judge`: how good an answer is by one criterion.",
    "compare": "`eval --judge`: which of two answers is better by one criterion.",
    "correct": "`eval --judge`: whether an answer says what a known one says.",
}
"""Every prompt by the name of its file, and what it is for."""
ENDING = ".txt"
MAX_PROMPT_BYTES = 32_768

_replaced: dict[str, str] = {}


class BadPromptFile(ValueError):
    """A file of prompts that cannot be used. The message is one sentence and names the file."""


def prompt_text(name: str, default: str) -> str:
    """What the model is told to do at this call: the text of the file `name`, else `default`."""
    assert name in PROMPTS, name
    return _replaced.get(name, default)


def replace_prompts(texts: Mapping[str, str]) -> None:
    """Puts these texts in the place of the prompts' own, and takes earlier ones back. For the start of a process."""
    _replaced.clear()
    _replaced.update({name: f"{text.rstrip()} " for name, text in texts.items()})


def read_prompt_files(folder: Path) -> dict[str, str]:
    """The texts in `folder`, by the prompts' names. Raises BadPromptFile; files that do not end in .txt are passed over."""
    try:
        files = sorted(path for path in folder.iterdir() if path.name.endswith(ENDING))
    except OSError as error:
        raise BadPromptFile(f"{folder} cannot be read: {error.strerror}") from None
    return {path.name.removesuffix(ENDING): _read(path) for path in files}


def _read(path: Path) -> str:
    if path.name.removesuffix(ENDING) not in PROMPTS:
        raise BadPromptFile(
            f"{path.name} is not a prompt; the prompts are {', '.join(name + ENDING for name in PROMPTS)}"
        )
    try:
        data = path.read_bytes()
        text = data.decode()
    except OSError as error:
        raise BadPromptFile(f"{path.name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadPromptFile(f"{path.name} is not UTF-8") from None
    if not text.strip():
        raise BadPromptFile(f"{path.name} is empty")
    if len(data) > MAX_PROMPT_BYTES:
        raise BadPromptFile(f"{path.name} has {len(data):,} bytes; a prompt has {MAX_PROMPT_BYTES:,} at most")
    return text
