"""`ask`: passages by a query, an answer by the model, citations that are verified."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from daemon.api.errors import Internal, NotConfigured, Upstream
from daemon.contract import AskRequest, AskResponse, Citation, QueryRequest, QueryResponse, Tokens
from daemon.services.queries import QueryService
from memory import reading
from memory.llm.client import ModelClient, Reply
from memory.llm.errors import BadAnswer, ModelError


class AskService:
    """The `Asks` port."""

    def __init__(self, queries: QueryService, client: ModelClient) -> None:
        self._queries = queries
        self._client = client

    async def ask(self, request: AskRequest) -> AskResponse:
        async with aclosing(self.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, AskResponse):
                    return part
        raise Internal("the answer ended without its end")

    async def stream(self, request: AskRequest) -> AsyncGenerator[str | AskResponse, None]:
        """What of the answer there is so far, each time longer, and last the answer itself."""
        if request.deep or request.steps is not None:
            raise NotConfigured("this version answers in one step; leave --deep and --steps out")
        began = time.perf_counter()
        found = await self._queries.query(QueryRequest(query=request.question, k=request.k))
        passages = [(passage.title, passage.text) for passage in found.passages]
        messages = reading.messages(request.question, passages)
        reply, shown = Reply(""), ""
        try:
            async with aclosing(self._client.stream("answer", messages, reading.SHAPE)) as replies:
                async for reply in replies:
                    text = reading.so_far(reply.text, len(passages))
                    if len(text) > len(shown):
                        shown = text
                        yield shown
            answer = reading.read_answer(reply.text, len(passages))
        except BadAnswer as error:
            self._client.told("answer", error.kind)
            raise Upstream(f"{error}; ask again, or use a model that answers in JSON") from None
        except ModelError as error:
            raise Upstream(str(error)) from None
        yield _response(request, found, answer, reply, (time.perf_counter() - began) * 1000)


def _response(
    request: AskRequest, found: QueryResponse, answer: reading.Answer, reply: Reply, took_ms: float
) -> AskResponse:
    cited = [passage for passage in found.passages if passage.rank in answer.cited]
    return AskResponse(
        question=request.question,
        answer=answer.text,
        citations=[Citation(rank=p.rank, document=p.document, title=p.title, text=p.text) for p in cited],
        steps=[],
        tokens=Tokens(prompt=reply.prompt_tokens, completion=reply.completion_tokens),
        took_ms=round(took_ms, 3),
        found=answer.found,
        short=answer.short,
        note=found.note,
    )
