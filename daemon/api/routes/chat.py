"""`POST /v1/chat/completions` and `GET /v1/models`: presents the memory as a model to OpenAI's clients.

Questions use the same ports as `/v1/query` and `/v1/ask`, so a client's access rights are the same. Chat programs render
messages as Markdown, so text from documents and from the model is escaped.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from functools import partial
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.endpoints import Routes
from daemon.api.middleware.disconnect import cancel_on_stop, cancel_stream_on_stop
from daemon.api.ports import MemoryPorts
from daemon.api.responses import LimitedStream, data_message
from daemon.api.routes.questions import NO_MODEL_DETAIL
from daemon.api.safe_markdown import escape_markdown, safe_markdown
from daemon.contract.answering.ask import AskProgress, AskRequest, AskResponse
from daemon.contract.answering.chat import (
    Annotation,
    AnswerMessage,
    ChatChoice,
    ChatChunk,
    ChatCompletion,
    ChatDelta,
    ChatModel,
    ChatRequest,
    ChunkChoice,
    ModelEntry,
    ModelList,
    UrlCitation,
    Usage,
)
from daemon.contract.answering.steps import StepEvent
from daemon.contract.http.routes import EVENT_STREAM, Need, Route, served
from daemon.contract.query import QueryRequest, QueryResponse, Tokens
from daemon.errors import Invalid, NotConfigured, NotFound, RequestError

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
STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            EVENT_STREAM: {"schema": {"description": "With `stream`: events of a ChatChunk each, then [DONE]."}}
        }
    }
}
DONE = b"data: [DONE]\n\n"
NO_TOKENS = Tokens(prompt=0, completion=0)


def conversation_question(request: ChatRequest) -> str:
    """Returns the user's last message, preceded by the two questions before it, because "And when?" alone finds nothing.

    Leaves out instructions to the model, and earlier answers, which would find their own sources again. Raises Invalid if the
    conversation has no user message or the last one is too long.
    """
    questions = [each.text for each in request.messages if each.role == "user" and each.text]
    if not questions:
        raise _invalid("contain no question by the user")
    *earlier_questions, question = questions
    if len(question) > QUESTION_CHARS_MAX:
        raise _invalid(f"end with a question of {len(question):,} characters; the limit is {QUESTION_CHARS_MAX:,}")
    earlier = [" ".join(text.split())[:EARLIER_CHARS] for text in earlier_questions[-EARLIER_QUESTIONS:]]
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
    """`cited`: (rank, title, URI) of each citation. Chat programs turn annotations into links, so only URIs with a scheme of
    `_LINKED` get one."""
    return [_annotation(content, rank, title, uri) for rank, title, uri in cited if _LINKED.match(uri)]


def _annotation(content: str, rank: int, title: str, uri: str) -> Annotation:
    number = f"[{rank}]"
    start = max(0, content.find(number))
    citation = UrlCitation(url=uri, title=title, start_index=start, end_index=start + len(number))
    return Annotation(url_citation=citation)


class _Completion:
    """The fields that all pieces of one completion share."""

    def __init__(self, model: ChatModel, chat: ChatRequest) -> None:
        self.id = f"chatcmpl-{uuid4().hex}"
        self.created = int(time.time())
        self.model = model
        self.with_usage = chat.stream_options is not None and chat.stream_options.include_usage

    def whole(self, content: str, annotations: list[Annotation], tokens: Tokens) -> ChatCompletion:
        message = AnswerMessage(content=content, annotations=annotations)
        return ChatCompletion(
            id=self.id,
            created=self.created,
            model=self.model,
            choices=[ChatChoice(message=message)],
            usage=_usage(tokens),
        )

    def chunk(self, delta: ChatDelta, *, last: bool = False) -> bytes:
        choice = ChunkChoice(delta=delta, finish_reason="stop" if last else None)
        return data_message(ChatChunk(id=self.id, created=self.created, model=self.model, choices=[choice]))

    def end(self, content: str, annotations: list[Annotation], tokens: Tokens) -> list[bytes]:
        """Returns the last pieces: the remaining content, and the usage if requested."""
        pieces = [self.chunk(ChatDelta(content=content, annotations=annotations)), self.chunk(ChatDelta(), last=True)]
        if self.with_usage:
            usage = ChatChunk(id=self.id, created=self.created, model=self.model, choices=[], usage=_usage(tokens))
            pieces.append(data_message(usage))
        return [*pieces, DONE]


def _usage(tokens: Tokens) -> Usage:
    return Usage(
        prompt_tokens=tokens.prompt, completion_tokens=tokens.completion, total_tokens=tokens.prompt + tokens.completion
    )


async def _streamed(
    completion: _Completion,
    answering: AsyncGenerator[StepEvent | AskProgress | AskResponse, None],
    stopping: asyncio.Event,
) -> AsyncGenerator[bytes, None]:
    """Yields the answer as the model writes it. Each step of a deep question yields an empty piece as a sign of progress.

    An error before the first piece is raised and becomes a problem response; a later one becomes an `error` in the stream.
    """
    shown, began = "", False
    try:
        async with aclosing(cancel_stream_on_stop(answering, stopping)) as parts:
            async for part in parts:
                if not began:
                    began = True
                    yield completion.chunk(ChatDelta(role="assistant"))
                if isinstance(part, AskResponse):
                    content, annotations = answer_content(part)
                    answer = safe_markdown(part.answer)
                    # If hippod removed a repetition from the answer, the client has already received more than the answer.
                    content = content[len(answer) :] if shown.startswith(answer) else _new_text(shown, content)
                    for piece in completion.end(content, annotations, part.tokens):
                        yield piece
                elif isinstance(part, AskProgress):
                    text = safe_markdown(part.text.rstrip(), finished=False)
                    new, shown = _new_text(shown, text), text
                    yield completion.chunk(ChatDelta(content=new))
                else:
                    yield completion.chunk(ChatDelta())
    except RequestError as error:
        if not began:
            raise
        yield data_message(responses.openai_error(error), key="error")


def _new_text(shown: str, text: str) -> str:
    """Returns the part of `text` after `shown`; if `text` does not begin with `shown`, all of `text` as a new paragraph."""
    if text.startswith(shown):
        return text[len(shown) :]
    return f"\n\n{text}"


async def _found(completion: _Completion, content: str, annotations: list[Annotation]) -> AsyncGenerator[bytes, None]:
    yield completion.chunk(ChatDelta(role="assistant"))
    for piece in completion.end(content, annotations, NO_TOKENS):
        yield piece


def _model(name: str, ports: MemoryPorts) -> ChatModel:
    """Returns the model. Raises NotFound for an unknown name, NotConfigured if it needs a language model and none is set."""
    if name not in list(ChatModel):
        raise NotFound(f"The model {name[:200]!r} does not exist; the models are {', '.join(ChatModel)}.")
    if name != ChatModel.SEARCH and ports.asks is None:
        raise NotConfigured(f"{NO_MODEL_DETAIL} The model {ChatModel.SEARCH} needs none.")
    return ChatModel(name)


class ChatRoutes(Routes):
    @served("POST", Route.CHAT, Need.READ, 404, 409, 502, described=STREAMED)
    async def chat_completions(
        self, request: Request, ports: MemoryPorts, chat: ChatRequest
    ) -> ChatCompletion | Response:
        """Answer the last message of a conversation, in OpenAI's protocol."""
        model = _model(chat.model, ports)
        question = conversation_question(chat)
        completion = _Completion(model, chat)
        if model is ChatModel.SEARCH:
            async with self.context.memory_for_query(request, search := QueryRequest(query=question)) as searched:
                content, annotations = passages_content(await searched.queries.query(search))
            if chat.stream:
                return LimitedStream(None, partial(_found, completion, content, annotations), EVENT_STREAM)
            return completion.whole(content, annotations, NO_TOKENS)
        assert ports.asks is not None
        ask_request = AskRequest(question=question, deep=model is ChatModel.DEEP)
        if chat.stream:
            begin = partial(_streamed, completion, ports.asks.stream(ask_request), self.context.stopping)
            return LimitedStream(self.context.asks, begin, EVENT_STREAM)
        with self.context.slot(self.context.asks, request):
            answer = await cancel_on_stop(self.context.stopping, ports.asks.ask(ask_request))
        return completion.whole(*answer_content(answer), answer.tokens)

    @served("GET", Route.MODELS, Need.READ)
    async def models(self, ports: MemoryPorts) -> ModelList:
        """List the models for conversations."""
        names = list(ChatModel) if ports.asks is not None else [ChatModel.SEARCH]
        return ModelList(data=[ModelEntry(id=name) for name in names])
