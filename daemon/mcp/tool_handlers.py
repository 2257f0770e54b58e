"""The implementation of each tool by requests to the HTTP API."""

import math
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from pydantic import TypeAdapter

from daemon.contract.answering.ask import AskResponse
from daemon.contract.choices import DocumentState
from daemon.contract.documents import AddResponse, DocumentEntry, DocumentList, RemoveResponse
from daemon.contract.http.problem_type import ProblemType
from daemon.contract.http.routes import Route, document_path
from daemon.contract.query import QueryResponse
from daemon.contract.show import ShowDocument, ShowResponse
from daemon.contract.status import Status
from daemon.mcp import tool_arguments
from daemon.mcp.daemon_client import CallError, DaemonClient, parse_answer, refusal, validate_answer
from daemon.mcp.tool_results import Added, Answered, DocumentText, Forgotten

WAIT_SLICE_S = 2.0
"""Interval of progress reports while waiting."""
PROGRESS_CHARS = 160
PASSAGES_MAX = 10_000
"""Maximum passages requested of one document."""

Progress = Callable[[float, str], Awaitable[None]]
"""Reports progress: a number that grows with each call, without a known end, and a sentence."""
SHOW_RESPONSE: TypeAdapter[ShowResponse] = TypeAdapter(ShowResponse)
ASK_RESPONSE = TypeAdapter(AskResponse)


async def search(client: DaemonClient, arguments: tool_arguments.Search, _progress: Progress) -> QueryResponse:
    body = arguments.model_dump(mode="json", exclude_none=True, exclude={"why"}) | {"explain": arguments.why}
    return await client.call(QueryResponse, "POST", Route.QUERY, body)


async def ask(client: DaemonClient, arguments: tool_arguments.Ask, progress: Progress) -> Answered:
    """Asks the question, and reports the events before the answer as progress."""
    body = arguments.model_dump(mode="json", exclude_none=True)
    count = 0
    async with aclosing(client.events(Route.ASK, body)) as events:
        async for event, data in events:
            if event == "answer":
                return _answered(validate_answer(ASK_RESPONSE, data))
            if event == "problem":
                raise refusal(data)
            count += 1
            await progress(count, _progress_text(event, data))
    raise CallError("The answer broke off; ask again.")


def _answered(answer: AskResponse) -> Answered:
    without_steps = answer.model_dump(exclude={"steps"})
    return Answered.model_validate(without_steps | {"steps": len(answer.steps)})


def _progress_text(event: str, data: Any) -> str:
    """Returns a step, or the end of the answer so far, as one line."""
    fields = data if isinstance(data, dict) else {}
    if event == "text":
        text = str(fields.get("text", ""))
        return text if len(text) <= PROGRESS_CHARS else f"…{text[-PROGRESS_CHARS:]}"
    words = [str(fields[key]) for key in ("kind", "step", "query", "stopped") if fields.get(key) is not None]
    return f"{event} {' '.join(words)}".strip()[:PROGRESS_CHARS]


async def add(client: DaemonClient, arguments: tool_arguments.Add, progress: Progress) -> Added:
    document = arguments.model_dump(exclude_none=True, include={"text", "title"})
    response = await client.call(
        AddResponse, "POST", Route.DOCUMENTS, {"documents": [{**(arguments.metadata or {}), **document}]}
    )
    uri = response.documents[0]
    await _wait(client, arguments.wait_s, progress)
    entry = await _document(client, uri)
    searchable = entry is not None and entry.state is DocumentState.INDEXED
    return Added(uri=uri, searchable=searchable, document=entry)


async def forget(client: DaemonClient, arguments: tool_arguments.Forget, progress: Progress) -> Forgotten:
    gone = await client.call(RemoveResponse, "DELETE", Route.DOCUMENTS, {"uris": arguments.uris})
    done = await _wait(client, arguments.wait_s, progress)
    return Forgotten(removed=gone.removed, missing=gone.missing, missing_uris=gone.missing_uris, done=done)


async def _wait(client: DaemonClient, timeout_s: float, progress: Progress) -> bool:
    """Waits until everything given to the memory is committed or failed; returns False if the time runs out first."""
    until, count = time.monotonic() + timeout_s, 0
    while (left := until - time.monotonic()) > 0:
        try:
            await client.call(Status, "POST", Route.WAIT, {"timeout_s": min(WAIT_SLICE_S, left)})
            return True
        except CallError as error:
            if error.type != ProblemType.TIMED_OUT:
                raise
        count += 1
        status = await client.call(Status, "GET", Route.STATUS)
        waited = math.ceil(timeout_s - (until - time.monotonic()))
        await progress(count, f"{status.pending} documents are waiting to be committed, {waited} s so far")
    return False


async def _document(client: DaemonClient, uri: str) -> DocumentEntry | None:
    try:
        shown = await client.call(ShowDocument, "GET", document_path(uri), params={"limit": 1})
    except CallError as error:
        if error.type != ProblemType.NOT_FOUND:
            raise
        return None
    return shown.document


async def show(client: DaemonClient, arguments: tool_arguments.Show, _progress: Progress) -> ShowResponse:
    return parse_answer(
        SHOW_RESPONSE, await client.fetch("GET", document_path(arguments.key), params={"limit": arguments.limit})
    )


async def list_documents(client: DaemonClient, arguments: tool_arguments.List, _progress: Progress) -> DocumentList:
    params = arguments.model_dump(mode="json", exclude_none=True)
    return await client.call(DocumentList, "GET", Route.DOCUMENTS, params=params)


async def read(client: DaemonClient, arguments: tool_arguments.Read, _progress: Progress) -> DocumentText:
    params = {"limit": PASSAGES_MAX}
    shown = parse_answer(SHOW_RESPONSE, await client.fetch("GET", document_path(arguments.uri), params=params))
    if not isinstance(shown, ShowDocument):
        raise CallError(f"{arguments.uri!r} is a {shown.kind}, not a document: use show.")
    texts: list[str] = []
    for passage in shown.passages[arguments.first - 1 :]:
        if texts and sum(map(len, texts)) + len(passage.text) > arguments.max_chars:
            break
        texts.append(passage.text)
    if not texts and shown.passages:
        raise CallError(f"The document has {len(shown.passages)} passages; there is none from {arguments.first} on.")
    last = arguments.first + len(texts) - 1
    return DocumentText(
        uri=shown.document.uri,
        title=shown.document.title,
        text="\n\n".join(texts),
        first=arguments.first,
        last=last,
        passages=shown.counts["passages"],
        next=last + 1 if last < len(shown.passages) else None,
    )


async def status(client: DaemonClient, _arguments: tool_arguments.Status, _progress: Progress) -> Status:
    return await client.call(Status, "GET", Route.STATUS)
