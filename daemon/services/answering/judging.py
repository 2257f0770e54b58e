"""Judges answers with the model, for evaluations. Uses nothing from the memory."""

from daemon.contract.evaluation import Criterion, JudgeRequest, JudgeResponse
from daemon.contract.query import Tokens
from daemon.errors import Invalid, UpstreamFailed
from memory.answering import answer_judge
from memory.llm.chat_completion import reply_tokens
from memory.llm.client import ModelClient
from memory.llm.errors import ModelError


class JudgeService:
    """Serves `POST /v1/judge`."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client

    async def judge(self, request: JudgeRequest) -> JudgeResponse:
        """Judges an answer with the model. Raises UpstreamFailed if the model fails."""
        question, answer = request.question, request.answer
        references, passages = request.references, request.passages
        match request.criterion:
            case Criterion.CORRECTNESS:
                _refuse_ineffective(request)
                messages = answer_judge.correct_prompt(question, answer, references, passages)
                schema, read = answer_judge.CORRECT_SCHEMA, answer_judge.read_correct
            case Criterion.COMPREHENSIVENESS | Criterion.DIVERSITY as criterion if request.other is None:
                messages = answer_judge.score_prompt(question, answer, references, criterion.value, passages)
                schema, read = answer_judge.SCORE_SCHEMA, answer_judge.read_score
            case Criterion.COMPREHENSIVENESS | Criterion.DIVERSITY as criterion:
                messages = answer_judge.better_prompt(
                    question, answer, request.other or "", references, criterion.value, passages
                )
                schema, read = answer_judge.BETTER_SCHEMA, answer_judge.read_better
        try:
            verdict, reply = await self._client.ask(
                "verdict", messages, schema, read, max_tokens=answer_judge.JUDGE_MAX_TOKENS
            )
        except ModelError as error:
            raise UpstreamFailed(str(error)) from None
        prompt, completion = reply_tokens(messages, reply)
        return JudgeResponse(
            reason=verdict.reason,
            score=verdict.score,
            better=verdict.better,
            correct=verdict.correct,
            tokens=Tokens(prompt=prompt, completion=completion),
        )


def _refuse_ineffective(request: JudgeRequest) -> None:
    if request.other is not None:
        message = "is not allowed for correctness, which judges one answer"
        raise Invalid(f"other {message}.", errors={"other": message})
    if not request.references:
        message = "are needed to judge correctness; give the known answers"
        raise Invalid(f"references {message}.", errors={"references": message})
