"""Builds the messages of a prompt. Every prompt uses these functions, so that all quoted material is neutralised.

System messages, and the examples of answers, contain the operator's text. User messages contain material: text of documents,
names, triples, earlier answers, and questions.
"""

from memory.llm.chat_completion import ChatMessage
from memory.llm.control_tokens import neutralise_control_tokens


def system_message(text: str) -> ChatMessage:
    """Returns a message with the operator's own text: the task and the form of the answer."""
    return {"role": "system", "content": text}


def example_answer(text: str) -> ChatMessage:
    """Returns a message with the operator's example of an answer."""
    return {"role": "assistant", "content": text}


def user_message(text: str) -> ChatMessage:
    """Returns a message with the material. All its parts must be joined first, because a control token may span two parts."""
    return {"role": "user", "content": neutralise_control_tokens(text)}


def quoted(name: str, text: str, number: int | None = None) -> str:
    """Returns `text` between marks that it cannot contain: «name 1» and «/name»."""
    opening = name if number is None else f"{name} {number}"
    return f"«{opening}»\n{without_quote_marks(text)}\n«/{name}»"


def without_quote_marks(text: str) -> str:
    """Returns `text` without the marks that quote material in a prompt."""
    return text.replace("«", "‹").replace("»", "›")


def shown_text(text: str) -> str:
    """Returns `text` as a prompt shows it to a model; text that the model repeats is compared with this. Idempotent."""
    return neutralise_control_tokens(without_quote_marks(text))
