"""What each tool does: requests to the socket API, one function a tool."""

import math
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from pydantic import TypeAdapter

from daemon.contract import (
    AddResponse,
    AskResponse,
    DocumentEntry,
    DocumentState,
    ProblemType,
    QueryResponse,
    RemoveResponse,
    Route,
    ShowDocument,
    ShowPassage,
    ShowPhrase,
    ShowResponse,
    ShowTriple,
    Status,
    document_path,
)
from daemon.contract.agents import arguments
from daemon.contract.agents.door import Door, Fault, checked, problem, read
from daemon.contract.agents.results import Added, Answered, Forgotten

ASK_S = 900.0
"""How long a model may say nothing while it answers."""
SLICE_S = 2.0
"""How often a wait says how far it is."""
LINE = 160
"""Characters of a message of progress."""

Progress = Callable[[float, str], Awaitable[None]]
"""How far (grows from call to call, towards an end that nobody knows), and a sentence."""
Shown = ShowDocument | ShowPassage | ShowPhrase | ShowTriple
SHOWN: TypeAdapter[Shown] = TypeAdapter(ShowResponse)
ASKED = TypeAdapter(AskResponse)


async def search(door: Door, asked: arguments.Search, _progress: Progress) -> QueryResponse:
    body = asked.model_dump(mode="json", exclude_none=True, exclude={"why"}) | {"explain": asked.why}
    return await door.call(QueryResponse, "POST", Route.QUERY, body)


async def ask(door: Door, asked: arguments.Ask, progress: Progress) -> Answered:
    """What the daemon says before the answer's end is progress."""
    body = asked.model_dump(mode="json", exclude_none=True)
    heard = 0
    async with aclosing(door.events(Route.ASK, body, ASK_S)) as events:
        async for event, data in events:
            if event == "answer":
                return _answered(checked(ASKED, data))
            if event == "problem":
                raise problem(data)
            heard += 1
            await progress(heard, _said(event, data))
    raise Fault("The answer broke off; ask again.")


def _answered(answer: AskResponse) -> Answered:
    given = answer.model_dump(exclude={"steps"})
    return Answered.model_validate(given | {"steps": len(answer.steps)})


def _said(event: str, data: Any) -> str:
    """A step or the answer so far, in a line."""
    told = data if isinstance(data, dict) else {}
    if event == "text":
        text = str(told.get("text", ""))
        return text if len(text) <= LINE else f"…{text[-LINE:]}"
    words = [str(told[key]) for key in ("kind", "step", "query", "stopped") if told.get(key) is not None]
    return f"{event} {' '.join(words)}".strip()[:LINE]


async def add(door: Door, given: arguments.Add, progress: Progress) -> Added:
    own = given.model_dump(exclude_none=True, exclude={"metadata", "wait_s"})
    taken = await door.call(AddResponse, "POST", Route.DOCUMENTS, {"documents": [{**(given.metadata or {}), **own}]})
    uri = taken.documents[0]
    await _settled(door, given.wait_s, progress)
    document = await _document(door, uri)
    searchable = document is not None and document.state is DocumentState.INDEXED
    return Added(uri=uri, searchable=searchable, document=document)


async def forget(door: Door, named: arguments.Forget, progress: Progress) -> Forgotten:
    gone = await door.call(RemoveResponse, "DELETE", Route.DOCUMENTS, {"uris": named.uris})
    done = await _settled(door, named.wait_s, progress)
    return Forgotten(removed=gone.removed, missing=gone.missing, missing_uris=gone.missing_uris, done=done)


async def _settled(door: Door, within_s: float, progress: Progress) -> bool:
    """Whether all that the memory was given is committed or failed; waits for it."""
    until, heard = time.monotonic() + within_s, 0
    while (left := until - time.monotonic()) > 0:
        try:
            await door.call(Status, "POST", Route.WAIT, {"timeout_s": min(SLICE_S, left)})
            return True
        except Fault as fault:
            if fault.type != ProblemType.TIMED_OUT:
                raise
        heard += 1
        status = await door.call(Status, "GET", Route.STATUS)
        waited = math.ceil(within_s - (until - time.monotonic()))
        await progress(heard, f"{status.pending} documents are waiting to be committed, {waited} s so far")
    return False


async def _document(door: Door, uri: str) -> DocumentEntry | None:
    try:
        shown = await door.call(ShowDocument, "GET", document_path(uri), params={"limit": 1})
    except Fault as fault:
        if fault.type != ProblemType.NOT_FOUND:
            raise
        return None
    return shown.document


async def show(door: Door, named: arguments.Show, _progress: Progress) -> Shown:
    return read(SHOWN, await door.fetch("GET", document_path(named.key), params={"limit": named.limit}))


async def status(door: Door, _none: arguments.Status, _progress: Progress) -> Status:
    return await door.call(Status, "GET", Route.STATUS)
