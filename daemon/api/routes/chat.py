"""`POST /v1/chat/completions` and `GET /v1/models`: presents the memory as a model to OpenAI's clients.

Questions use the same ports as `/v1/query` and `/v1/ask`, so a client's access rights are the same.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.chat_answers import answer_content, conversation_question, passages_content
from daemon.api.endpoints import Endpoints
from daemon.api.middleware.disconnect import cancel_on_stop, cancel_stream_on_stop
from daemon.api.ports import MemoryPorts
from daemon.api.routes.questions import NO_MODEL_DETAIL
from daemon.api.safe_markdown import safe_markdown
from daemon.api.streaming import LimitedStream, data_message
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
    Usage,
)
from daemon.contract.answering.steps import StepEvent
from daemon.contract.http.routes import EVENT_STREAM, Route
from daemon.contract.http.served import Need
from daemon.contract.query import QueryRequest, Tokens
from daemon.errors import NotConfigured, NotFound, RequestError

STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            EVENT_STREAM: {"schema": {"description": "With `stream`: events of a ChatChunk each, then [DONE]."}}
        }
    }
}
DONE = b"data: [DONE]\n\n"
NO_TOKENS = Tokens(prompt=0, completion=0)


class _Completion:
    """The fields that all pieces of one completion share."""

    def __init__(self, model: ChatModel, wanted: ChatRequest) -> None:
        self.id = f"chatcmpl-{uuid4().hex}"
        self.created = int(time.time())
        self.model = model
        self.with_usage = wanted.stream_options is not None and wanted.stream_options.include_usage

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
        """Returns the last pieces: the rest of the content, and the usage if the client wants it."""
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
    made: _Completion, answering: AsyncGenerator[StepEvent | AskProgress | AskResponse, None], stopping: asyncio.Event
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
                    yield made.chunk(ChatDelta(role="assistant"))
                if isinstance(part, AskResponse):
                    content, annotations = answer_content(part)
                    answer = safe_markdown(part.answer)
                    # The client has more than the answer if hippod cut off a repetition.
                    content = content[len(answer) :] if shown.startswith(answer) else _new_text(shown, content)
                    for piece in made.end(content, annotations, part.tokens):
                        yield piece
                elif isinstance(part, AskProgress):
                    text = safe_markdown(part.text.rstrip(), finished=False)
                    new, shown = _new_text(shown, text), text
                    yield made.chunk(ChatDelta(content=new))
                else:
                    yield made.chunk(ChatDelta())
    except RequestError as error:
        if not began:
            raise
        yield data_message(responses.openai_error(error), key="error")


def _new_text(shown: str, text: str) -> str:
    """Returns what `text` adds to `shown`; if it does not begin with `shown`, all of `text` as a separate paragraph."""
    if text.startswith(shown):
        return text[len(shown) :]
    return f"\n\n{text}"


async def _found(made: _Completion, content: str, annotations: list[Annotation]) -> AsyncGenerator[bytes, None]:
    yield made.chunk(ChatDelta(role="assistant"))
    for piece in made.end(content, annotations, NO_TOKENS):
        yield piece


def _model(name: str, ports: MemoryPorts) -> ChatModel:
    """Returns the model. Raises NotFound for an unknown name, NotConfigured if it needs a language model and none is set."""
    if name not in list(ChatModel):
        raise NotFound(f"The model {name[:200]!r} does not exist; the models are {', '.join(ChatModel)}.")
    if name != ChatModel.SEARCH and ports.asks is None:
        raise NotConfigured(f"{NO_MODEL_DETAIL} The model {ChatModel.SEARCH} answers without.")
    return ChatModel(name)


def add_routes(endpoints: Endpoints) -> None:
    context = endpoints.context

    @endpoints.add("POST", Route.CHAT, Need.READ, 404, 409, 502, described=STREAMED)
    async def chat_completions(request: Request, ports: MemoryPorts, wanted: ChatRequest) -> ChatCompletion | Response:
        """Answer the last message of a conversation, in OpenAI's protocol."""
        model = _model(wanted.model, ports)
        question = conversation_question(wanted)
        made = _Completion(model, wanted)
        if model is ChatModel.SEARCH:
            async with context.memory_for_query(request, search := QueryRequest(query=question)) as searched:
                content, annotations = passages_content(await searched.queries.query(search))
            if wanted.stream:
                return LimitedStream(None, partial(_found, made, content, annotations), EVENT_STREAM)
            return made.whole(content, annotations, NO_TOKENS)
        assert ports.asks is not None
        asked = AskRequest(question=question, deep=model is ChatModel.DEEP)
        if wanted.stream:
            begin = partial(_streamed, made, ports.asks.stream(asked), context.stopping)
            return LimitedStream(context.asks, begin, EVENT_STREAM)
        with context.slot(context.asks, request):
            answer = await cancel_on_stop(context.stopping, ports.asks.ask(asked))
        return made.whole(*answer_content(answer), answer.tokens)

    @endpoints.add("GET", Route.MODELS, Need.READ)
    async def models(ports: MemoryPorts) -> ModelList:
        """List the models that a conversation can be with."""
        names = list(ChatModel) if ports.asks is not None else [ChatModel.SEARCH]
        return ModelList(data=[ModelEntry(id=name) for name in names])
