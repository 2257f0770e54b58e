"""Translates OpenAI's chat protocol: a conversation to a question, and an answer or found passages to a message.

Chat programs render messages as Markdown, so text from documents and from the model is escaped.
"""

import re
from collections.abc import Iterable
from urllib.parse import quote

from daemon.api.safe_markdown import escape_markdown, safe_markdown
from daemon.contract.answering.ask import AskResponse
from daemon.contract.answering.chat import Annotation, ChatRequest, UrlCitation
from daemon.contract.query import QueryResponse
from daemon.errors import Invalid

EARLIER_QUESTIONS = 2
"""Number of earlier questions put before the last question of a conversation."""
EARLIER_CHARS = 400
"""Maximum characters of each earlier question."""
QUESTION_CHARS_MAX = 30_000
"""Maximum characters of the last question: less than a query's maximum, to leave space for the earlier questions."""
_URL_SAFE = ":/?#@!$&*+,;=%~'"
"""Characters of a URI that a link does not percent-encode. Brackets are encoded because they would end the link."""
_LINKED = re.compile("(?:https?|file|kafka|s3)://|added:|mailto:", re.IGNORECASE)
"""Schemes of URIs that become links. A record's URI may have any scheme, even one that starts a program when clicked."""


def conversation_question(request: ChatRequest) -> str:
    """Returns the user's last message, preceded by the two questions before it: "And when?" alone finds nothing.

    Answers are left out, because the memory would find its own statements again; so are instructions to the model. Raises
    Invalid if the conversation has no user message or the last one is too long.
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
    return Invalid("The request is not valid.", errors={"messages": why})


def answer_content(answer: AskResponse) -> tuple[str, list[Annotation]]:
    """Returns the numbered answer, followed by links to the cited documents, and the annotations."""
    sources = "\n".join(f"- [{each.rank}] {_link(each.title, each.document)}" for each in answer.citations)
    text = safe_markdown(answer.answer)
    content = f"{text}\n\n{sources}" if sources else text
    return content, _annotations(content, [(each.rank, each.title, each.document) for each in answer.citations])


def passages_content(found: QueryResponse) -> tuple[str, list[Annotation]]:
    """Returns the passages, best first, each quoted below a link to its document, and the annotations."""
    parts = []
    for passage in found.passages:
        quoted = "\n".join(f"> {line}".rstrip() for line in safe_markdown(passage.text).splitlines())
        parts.append(f"[{passage.rank}] {_link(passage.title, passage.document)}\n\n{quoted}")
    content = "\n\n".join(parts) or "No passage was found."
    if found.note:
        content += f"\n\n{safe_markdown(found.note)}"
    return content, _annotations(content, [(each.rank, each.title, each.document) for each in found.passages])


def _link(title: str, uri: str) -> str:
    """Returns a link to the document, labelled with its title or else its URI; plain text if the URI must not be a link."""
    if not _LINKED.match(uri):
        return escape_markdown(f"{title} ({uri})" if title else uri)
    scheme, rest = uri[: uri.index(":") + 1], uri[uri.index(":") + 1 :]
    host = "//" if rest.startswith("//") else ""
    # A renderer that refuses the link shows the URI as text, so the path must not look like another address.
    path = quote(rest.removeprefix(host), safe=_URL_SAFE).replace("//", "/%2F")
    return f"[{escape_markdown(title or uri)}]({scheme}{host}{path})"


def _annotations(content: str, cited: Iterable[tuple[int, str, str]]) -> list[Annotation]:
    """Takes (rank, title, URI) of each citation. Programs turn annotations into links, so other URIs get none."""
    return [_annotation(content, rank, title, uri) for rank, title, uri in cited if _LINKED.match(uri)]


def _annotation(content: str, rank: int, title: str, uri: str) -> Annotation:
    number = f"[{rank}]"
    start = max(0, content.find(number))
    citation = UrlCitation(url=uri, title=title, start_index=start, end_index=start + len(number))
    return Annotation(url_citation=citation)
