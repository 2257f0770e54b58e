"""`POST /v1/query`, `/v1/ask`, `/v1/graph` and `/v1/judge`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from daemon.api.endpoints import Routes
from daemon.api.middleware.disconnect import cancel_on_stop, cancel_stream_on_stop
from daemon.api.ports import MemoryPorts
from daemon.api.responses import LimitedStream, sse_message
from daemon.contract.answering.ask import AskProgress, AskRequest, AskResponse
from daemon.contract.answering.steps import StepEvent
from daemon.contract.evaluation import JudgeRequest, JudgeResponse
from daemon.contract.graph import GraphRequest, GraphResponse
from daemon.contract.http.routes import EVENT_STREAM, Need, Route, served
from daemon.contract.query import QueryRequest, QueryResponse
from daemon.errors import NotConfigured, NotFound, RequestError

NO_MODEL_DETAIL = (
    'No language model is configured. Set base_url = "http://localhost:8000/v1" and model = "NAME" in [llm], and api_key_env '
    "or api_key_file if the server needs a key; then restart hippod."
)
STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            EVENT_STREAM: {
                "schema": {
                    "type": "string",
                    "description": "`step` events (a StepEvent each) for questions of several steps, `text` events (an "
                    "AskProgress each), then one `answer` (an AskResponse) or `problem`.",
                }
            }
        }
    }
}
"""The response if `Accept` contains the media type of event streams."""


async def _messages(
    answering: AsyncGenerator[StepEvent | AskProgress | AskResponse, None], stopping: asyncio.Event
) -> AsyncGenerator[bytes, None]:
    """Yields server-sent events: `step` events, `text` events with the whole answer so far, then `answer` or `problem`.

    If the daemon stops, the stream ends with `problem`. An error before the first event is raised and becomes a problem
    response.
    """
    began = False
    try:
        async with aclosing(cancel_stream_on_stop(answering, stopping)) as parts:
            async for part in parts:
                began = True
                yield _message(part)
    except RequestError as error:
        if not began:
            raise
        yield sse_message("problem", error.problem())


def _message(part: StepEvent | AskProgress | AskResponse) -> bytes:
    match part:
        case AskResponse():
            return sse_message("answer", part)
        case StepEvent():
            return sse_message("step", part)
        case AskProgress():
            return sse_message("text", part)


class QuestionRoutes(Routes):
    @served("POST", Route.QUERY, Need.READ, 409, 502)
    async def query(self, request: Request, question: QueryRequest) -> QueryResponse:
        """Find passages."""
        if question.after:
            with self.context.slot(self.context.waits, request):
                await (await self.context.memory(request)).freshness.wait(question)
        async with self.context.memory_for_query(request, question) as ports:
            return await ports.queries.query(question)

    @served("POST", Route.ASK, Need.READ, 409, 502, described=STREAMED)
    async def ask(self, request: Request, ports: MemoryPorts, question: AskRequest) -> AskResponse | Response:
        """Answer a question from the memory, with citations."""
        if ports.asks is None:
            raise NotConfigured(NO_MODEL_DETAIL)
        if EVENT_STREAM in request.headers.get("accept", ""):
            begin = partial(_messages, ports.asks.stream(question), self.context.stopping)
            return LimitedStream(self.context.asks, begin, EVENT_STREAM)
        with self.context.slot(self.context.asks, request):
            return await cancel_on_stop(self.context.stopping, ports.asks.ask(question))

    @served("POST", Route.GRAPH, Need.READ, 404, 409)
    async def graph(self, request: Request, question: GraphRequest) -> GraphResponse:
        """Show the graph around a query, or around one phrase or passage."""
        async with self.context.memory_for_query(request, question) as ports:
            found = await ports.graphs.graph(question)
        if found is None:
            name = question.phrase if question.phrase is not None else question.passage or ""
            kind = "phrase" if question.phrase is not None else "passage with the id"
            raise NotFound(f"The memory has no {kind} {name[:500]!r}.")
        return found

    @served("POST", Route.JUDGE, Need.READ, 409, 502)
    async def judge(self, request: Request, ports: MemoryPorts, question: JudgeRequest) -> JudgeResponse:
        """Judge an answer, or compare two answers, with the model."""
        if ports.judge is None:
            raise NotConfigured(NO_MODEL_DETAIL)
        with self.context.slot(self.context.asks, request):
            return await cancel_on_stop(self.context.stopping, ports.judge.judge(question))
