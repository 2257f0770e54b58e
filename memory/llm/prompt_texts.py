"""The texts of the prompts. Each default text is in the module that sends it; a file can replace it.

A file contains the task for the model. hippod adds the warning about quoted text, so that material is not taken for
instructions, and the JSON format, so that answers can be parsed. Files are read and checked once, at the start.
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
"""The purpose of each prompt, by the name of its file."""
ENDING = ".txt"
MAX_PROMPT_BYTES = 32_768

_replaced: dict[str, str] = {}


class BadPromptFile(ValueError):
    """A prompt file is invalid. The message is one sentence and names the file."""


def prompt_text(name: str, default: str) -> str:
    """Returns the task for the model: the text of the file `name`, or `default`."""
    assert name in PROMPTS, name
    return _replaced.get(name, default)


def replace_prompts(texts: Mapping[str, str]) -> None:
    """Replaces default prompts by these texts, and undoes earlier replacements. Called at the start of a process."""
    _replaced.clear()
    _replaced.update({name: f"{text.rstrip()} " for name, text in texts.items()})


def read_prompt_files(folder: Path) -> dict[str, str]:
    """Returns the texts in `folder` by prompt name. Ignores files that do not end in .txt. Raises BadPromptFile if a file is
    invalid."""
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
