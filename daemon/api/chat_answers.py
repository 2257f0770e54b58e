"""Between OpenAI's chat protocol and the memory's own questions: what is asked, and how an answer is written as a message."""

from urllib.parse import quote

from daemon.contract.answering.ask import AskRequest, AskResponse
from daemon.contract.answering.chat import Annotation, ChatModel, ChatRequest, UrlCitation
from daemon.contract.http.problem import FieldError
from daemon.contract.query import QueryRequest, QueryResponse
from daemon.errors import Invalid

EARLIER_QUESTIONS = 2
"""Earlier questions of a conversation that stand before the last one."""
EARLIER_CHARS = 400
"""Characters of each."""
QUESTION_CHARS_MAX = 30_000
"""A little less than a query's most: the earlier ones stand before it."""
_URL_SAFE = ":/?#@!$&*+,;=%~'"
"""What stays in a link: brackets would end it."""


def conversation_question(request: ChatRequest) -> str:
    """The user's last message, after the two questions before it: "And when?" alone finds nothing.

    Answers are not taken up (what the memory has said would be found again for having been said), nor are instructions to the
    model. Invalid where the user says nothing, or too much.
    """
    asked = [each.text for each in request.messages if each.role == "user" and each.text]
    if not asked:
        raise _invalid("hold no question of the user's")
    *before, question = asked
    if len(question) > QUESTION_CHARS_MAX:
        raise _invalid(f"end in a question of {len(question):,} characters; {QUESTION_CHARS_MAX:,} are the most")
    earlier = [" ".join(text.split())[:EARLIER_CHARS] for text in before[-EARLIER_QUESTIONS:]]
    return "\n".join([*(f"(Asked before: {text})" for text in earlier), question])


def _invalid(why: str) -> Invalid:
    return Invalid("The request is not valid.", errors=[FieldError(field="messages", message=why)])


def ask_request(question: str, model: ChatModel) -> AskRequest:
    return AskRequest(question=question, deep=model is ChatModel.DEEP)


def query_request(question: str) -> QueryRequest:
    return QueryRequest(query=question)


def answer_content(answer: AskResponse) -> tuple[str, list[Annotation]]:
    """The answer with its numbers, and the documents that these stand for as links below it."""
    sources = "\n".join(
        f"- [{each.rank}] {_link(each.title or each.document, each.document)}" for each in answer.citations
    )
    content = f"{answer.answer}\n\n{sources}" if sources else answer.answer
    return content, [_annotation(content, each.rank, each.title, each.document) for each in answer.citations]


def passages_content(found: QueryResponse) -> tuple[str, list[Annotation]]:
    """The passages, best first, each as a quotation below the link to its document."""
    parts = []
    for passage in found.passages:
        quoted = "\n".join(f"> {line}".rstrip() for line in passage.text.splitlines())
        parts.append(f"[{passage.rank}] {_link(passage.title or passage.document, passage.document)}\n\n{quoted}")
    content = "\n\n".join(parts) or "No passage was found."
    if found.note:
        content += f"\n\n{found.note}"
    return content, [_annotation(content, each.rank, each.title, each.document) for each in found.passages]


def _link(title: str, uri: str) -> str:
    text = " ".join(title.split()).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return f"[{text}]({quote(uri, safe=_URL_SAFE)})"


def _annotation(content: str, rank: int, title: str, uri: str) -> Annotation:
    number = f"[{rank}]"
    start = max(0, content.find(number))
    citation = UrlCitation(url=uri, title=title, start_index=start, end_index=start + len(number))
    return Annotation(url_citation=citation)
