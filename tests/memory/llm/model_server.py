"""A server that speaks OpenAI's protocol as a test tells it to: real sockets, real HTTP, every way to misbehave.

A script is asked for each call and says what comes of it: JSON to answer with, text, a status, or a way to fail.
"""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memory.phrase_normalisation import normalise_phrase

LOADING = '{"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}'
"""llama.cpp's own words until its model is loaded."""
PIECE = 12
"""Characters in one event of a streamed answer."""


@dataclass(frozen=True)
class Call:
    """One request. `passage`: what is quoted.

    `purpose`: "entities", "triples", "filter", "query_entities", "judge", "evolve", "merge", "thought", "answer", "probe" or
    "embeddings".
    """

    purpose: str
    passage: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float

    @property
    def format(self) -> str:
        return str((self.body.get("response_format") or {}).get("type", "words"))


@dataclass(frozen=True)
class Text:
    """The message's content as it stands."""

    content: str
    finish: str = "stop"


@dataclass(frozen=True)
class Status:
    """An HTTP error."""

    code: int
    body: str = '{"error": {"message": "no"}}'
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """A body that is no chat completion."""

    body: str


@dataclass(frozen=True)
class Hang:
    """Takes the request and says nothing more."""


@dataclass(frozen=True)
class Drop:
    """Closes the connection without a word."""


@dataclass(frozen=True)
class Dies:
    """Streams so many characters of the text, then closes the connection."""

    content: str
    after: int


@dataclass(frozen=True)
class Pauses:
    """Streams so many characters of the text, and the rest once `go` is set."""

    content: str
    after: int
    go: threading.Event


Script = Callable[[Call], Any]


class ModelServer:
    """Runs in a thread of its own; `script` may be changed at any time. `latency_s` is added to every answer."""

    def __init__(self, script: Script, latency_s: float = 0.0, piece_s: float = 0.0) -> None:
        self.script = script
        self.latency_s = latency_s
        self.piece_s = piece_s
        self.calls: list[Call] = []
        self.answered: Counter[tuple[str, str]] = Counter()
        """How often a usable answer was sent, by purpose and passage."""
        self.refused = 0
        self.inside = 0
        self.most_inside = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> "ModelServer":
        """Listens, on the same port as before."""
        self._run(self._start())
        return self

    def stop(self) -> None:
        """Nobody listens any more, and every connection breaks."""
        self._run(self._stop())

    def close(self) -> None:
        self.stop()
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        """Ends what still answers: a hanging call would be left to the interpreter's end, which complains of it."""
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def __enter__(self) -> "ModelServer":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def count(self, purpose: str) -> int:
        return sum(call.purpose == purpose for call in list(self.calls))

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                path = head.split(" ", 2)[1]
                headers = {
                    name.strip().lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:] if line)
                }
                body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
                if not await self._answer(_call(path, body, headers), writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, call: Call, writer: asyncio.StreamWriter) -> bool:
        self.calls.append(call)
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        try:
            said = self.script(call)
            if isinstance(said, Hang):
                await asyncio.sleep(3600)
            if isinstance(said, Drop):
                writer.transport.abort()
                return False
            if isinstance(said, Status):
                self.refused += said.code == 429
                await _send(writer, said.code, said.body, said.headers)
                return True
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            if isinstance(said, Raw):
                await _send(writer, 200, said.body)
            elif call.purpose == "embeddings":
                await _send(writer, 200, json.dumps(said))
            elif call.body.get("stream"):
                return await self._stream(call, writer, said)
            else:
                text = said if isinstance(said, Text) else Text(json.dumps(said))
                self.answered[call.purpose, call.passage] += 1
                await _send(writer, 200, json.dumps(_completion(call, text)))
            return True
        finally:
            self.inside -= 1

    async def _stream(self, call: Call, writer: asyncio.StreamWriter, said: Any) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        content = said.content if isinstance(said, Text | Dies | Pauses) else json.dumps(said)
        end = said.after if isinstance(said, Dies) else len(content)
        size = max(PIECE, len(content) // 400)
        for start in range(0, end, size):
            while isinstance(said, Pauses) and start >= said.after and not said.go.is_set():
                await asyncio.sleep(0.01)
            writer.write(_event({"content": content[start : min(start + size, end)]}, None))
            await writer.drain()
            if self.piece_s:
                await asyncio.sleep(self.piece_s)
        if isinstance(said, Dies):
            writer.transport.abort()
            return False
        if call.purpose in ("entities", "triples"):
            self.answered[call.purpose, call.passage] += 1
        writer.write(_event({}, said.finish if isinstance(said, Text) else "stop"))
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        last = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage}
        writer.write(b"data: " + json.dumps(last).encode() + b"\n\ndata: [DONE]\n\n")
        await writer.drain()
        return False


def _event(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


async def _send(writer: asyncio.StreamWriter, code: int, body: str, headers: dict[str, str] | None = None) -> None:
    data = body.encode()
    more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    head = f"HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n{more}\r\n"
    writer.write(head.encode() + data)
    await writer.drain()


def _completion(call: Call, text: Text) -> dict[str, Any]:
    prompt = sum(len(message["content"]) for message in call.body["messages"]) // 4
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": call.body["model"],
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text.content}, "finish_reason": text.finish}
        ],
        "usage": {"prompt_tokens": prompt, "completion_tokens": 5, "total_tokens": prompt + 5},
    }


def _call(path: str, body: dict[str, Any], headers: dict[str, str]) -> Call:
    if path.endswith("/embeddings"):
        return Call("embeddings", "", body, headers, time.monotonic())
    messages = body.get("messages", [{"content": ""}])
    task, last = messages[0]["content"], messages[-1]["content"]
    purpose = next(
        (
            name
            for word, name in (
                ('"named_entities"', "entities"),
                ('"query_entities"', "query_entities"),
                ('{"triples"', "triples"),
                ('{"relevant"', "filter"),
                ('{"subquery"', "subquery"),
                ('{"enough"', "judge"),
                ('"inserts": [{', "evolve"),
                ('{"merges"', "merge"),
                ('"thought"', "thought"),
                ('"score"', "score"),
                ('"better"', "better"),
                ('"correct"', "correct"),
                ('"sentences"', "answer"),
            )
            if word in task
        ),
        "probe",
    )
    passage = last.partition("«passage»\n")[2].partition("\n«/passage»")[0] if purpose != "answer" else last
    return Call(purpose, passage or last, body, headers, time.monotonic())


def obedient(call: Call) -> Any:
    """What a good model might say: the passage's capitalised words are entities, its first three words a triple."""
    words = call.passage.split()
    if call.purpose == "entities":
        return {"named_entities": [word.strip(".,") for word in words if word[:1].isupper()][:20]}
    if call.purpose == "triples":
        title, _, text = call.passage.partition("\n")
        first = [word for word in (text or title).split() if normalise_phrase(word)][:3]
        return {"triples": [[title, "mentions", first[0]], first] if len(first) == 3 else []}
    if call.purpose == "query_entities":
        asked = json.loads(call.passage)["question"].split()
        return {"query_entities": [word.strip("?.,") for word in asked if word[:1].isupper()]}
    if call.purpose == "filter":
        return {"relevant": json.loads(call.passage)["candidates"]}
    if call.purpose == "judge":
        return {"enough": True, "concerns": []}
    if call.purpose == "subquery":
        return {"subquery": f"What of {call.passage.rpartition(': ')[2]}"}
    if call.purpose == "evolve":
        point = {"description": "Something is known.", "entities": [1], "names": [], "passages": [1]}
        return {"updates": [], "inserts": [point]}
    if call.purpose == "merge":
        return {"merges": []}
    if call.purpose == "thought":
        return {"thought": "It is so.", "sources": [1], "answers": True}
    if call.purpose in ("score", "better", "correct"):
        return {"reason": "So it is.", call.purpose: {"score": 70, "better": 0, "correct": True}[call.purpose]}
    if call.purpose == "answer":
        return {"found": True, "sentences": [{"text": "It is so.", "sources": [1]}], "short": "so"}
    return Text("OK")
