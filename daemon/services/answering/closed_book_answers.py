"""Answers without retrieval, from the model's own knowledge, as a baseline ("None" in HippoRAG 2, Table 2)."""

import time
from collections.abc import Callable

from daemon.contract.answering.ask import AskProgress, AskRequest, AskResponse
from daemon.contract.answering.steps import StepEvent
from daemon.contract.query import Tokens
from daemon.services.answering.iterative_answers import failure_of
from daemon.services.answering.request_budget import answer_form_of, budget_of
from memory.answering.qa_reader import reader_prompt, stream_answer
from memory.llm.client import ModelClient
from store.store import Store


class ClosedBookAnswers:
    def __init__(self, store: Store, client: ModelClient) -> None:
        self._store = store
        self._client = client

    async def answer(self, request: AskRequest, report: Callable[[StepEvent | AskProgress], None]) -> AskResponse:
        """Answers the question, and reports the text as it grows. Raises UpstreamFailed if the model fails."""
        began, form = time.perf_counter(), answer_form_of(request)
        limit_s = budget_of(request).seconds
        messages = reader_prompt(request.question, (), form)
        written = await stream_answer(
            self._client, messages, 0, limit_s, lambda text: report(AskProgress(text=text)), form
        )
        if written.answer is None:
            raise failure_of(written.error, limit_s)
        return AskResponse(
            question=request.question,
            answer=written.answer.text,
            citations=[],
            steps=[],
            tokens=Tokens(prompt=written.prompt_tokens, completion=written.completion_tokens),
            took_ms=round((time.perf_counter() - began) * 1000, 3),
            found=written.answer.found,
            short=written.answer.short,
            reasoning=written.answer.reasoning or None,
            note="answered without the memory",
            commit=self._store.snapshot().commit,
        )
