"""Between OpenAI's chat protocol and the memory's own questions: what is asked, and how an answer is written as a message.

Chat programs render a message as Markdown. What others wrote in it, the model among them, is made safe for that.
"""

import re
from collections.abc import Iterable
from urllib.parse import quote

from daemon.api.safe_markdown import escape_markdown, safe_markdown
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
"""Characters that stay in a link: brackets would end it."""
_LINKED = re.compile("(?:https?|file|kafka|s3)://|added:|mailto:", re.IGNORECASE)
"""How a document's URI begins that becomes a link. A record's URI may have any scheme, such as one that runs a program."""


def conversation_question(request: ChatRequest) -> str:
    """The user's last message, after the two questions before it: "And when?" alone finds nothing.

    Answers are not taken up (what the memory has said would be found again for having been said), nor are instructions to the
    model. Invalid where the user says nothing, or too much.
    """
    asked = [each.text for each in request.messages if each.role == "user" and each.text]
    if not asked:
        raise _invalid("contain no question of the user")
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
    sources = "\n".join(f"- [{each.rank}] {_link(each.title, each.document)}" for each in answer.citations)
    text = safe_markdown(answer.answer)
    content = f"{text}\n\n{sources}" if sources else text
    return content, _annotations(content, [(each.rank, each.title, each.document) for each in answer.citations])


def passages_content(found: QueryResponse) -> tuple[str, list[Annotation]]:
    """The passages, best first, each as a quotation below the link to its document."""
    parts = []
    for passage in found.passages:
        quoted = "\n".join(f"> {line}".rstrip() for line in safe_markdown(passage.text).splitlines())
        parts.append(f"[{passage.rank}] {_link(passage.title, passage.document)}\n\n{quoted}")
    content = "\n\n".join(parts) or "No passage was found."
    if found.note:
        content += f"\n\n{safe_markdown(found.note)}"
    return content, _annotations(content, [(each.rank, each.title, each.document) for each in found.passages])


def _link(title: str, uri: str) -> str:
    """The document's title, or its URI where it has none, as a link to the document where the URI may be one."""
    if not _LINKED.match(uri):
        return escape_markdown(f"{title} ({uri})" if title else uri)
    scheme, rest = uri[: uri.index(":") + 1], uri[uri.index(":") + 1 :]
    host = "//" if rest.startswith("//") else ""
    # A renderer that refuses the link shows the URI as text: it must not hold another address.
    path = quote(rest.removeprefix(host), safe=_URL_SAFE).replace("//", "/%2F")
    return f"[{escape_markdown(title or uri)}]({scheme}{host}{path})"


def _annotations(content: str, cited: Iterable[tuple[int, str, str]]) -> list[Annotation]:
    """Of (rank, title, URI) each: programs make a link of an annotation, so only of URIs that may be one."""
    return [_annotation(content, rank, title, uri) for rank, title, uri in cited if _LINKED.match(uri)]


def _annotation(content: str, rank: int, title: str, uri: str) -> Annotation:
    number = f"[{rank}]"
    start = max(0, content.find(number))
    citation = UrlCitation(url=uri, title=title, start_index=start, end_index=start + len(number))
    return Annotation(url_citation=citation)
