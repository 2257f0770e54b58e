"""The messages of a prompt. Every prompt is made of these functions, so that nothing that is quoted reaches a model unguarded.

The operator speaks in system messages, and in the examples of what the model is to answer. User messages have material: text of
documents, names, triples, earlier answers, and questions.
"""

from memory.llm.chat_completion import ChatMessage
from memory.llm.control_tokens import neutralise_control_tokens


def system_message(text: str) -> ChatMessage:
    """The operator's own words: the task, and the form of the answer."""
    return {"role": "system", "content": text}


def example_answer(text: str) -> ChatMessage:
    """The operator's example of an answer."""
    return {"role": "assistant", "content": text}


def user_message(text: str) -> ChatMessage:
    """The material, all parts of it joined: a control token may begin in one part and end in the next."""
    return {"role": "user", "content": neutralise_control_tokens(text)}


def quoted(name: str, text: str, number: int | None = None) -> str:
    """`text` between marks that it cannot contain: «name 1» and «/name»."""
    opening = name if number is None else f"{name} {number}"
    return f"«{opening}»\n{without_quote_marks(text)}\n«/{name}»"


def without_quote_marks(text: str) -> str:
    """`text` without the marks that quote material in a prompt."""
    return text.replace("«", "‹").replace("»", "›")


def shown_text(text: str) -> str:
    """`text` as a model is shown it in a prompt; what the model repeats is compared with this. Idempotent."""
    return neutralise_control_tokens(without_quote_marks(text))
