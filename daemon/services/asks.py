"""`ask`: an answer by the model, in one step or several, with citations that are verified."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from daemon.api.errors import Internal, Invalid
from daemon.contract import AskRequest, AskResponse, FieldError, StepEvent
from daemon.services.deep_answers import DeepAnswers
from daemon.services.queries import QueryService
from daemon.services.read_answers import ReadAnswers
from daemon.services.sessions import SessionService
from memory.llm.client import ModelClient
from store.store import Store


class AskService:
    """The `Asks` port."""

    def __init__(self, store: Store, queries: QueryService, client: ModelClient, sessions: SessionService) -> None:
        self._read = ReadAnswers(store, queries, client)
        self._deep = DeepAnswers(store, queries, client, sessions)

    async def ask(self, request: AskRequest) -> AskResponse:
        async with aclosing(self.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, AskResponse):
                    return part
        raise Internal("the answer ended without its end")

    async def stream(self, request: AskRequest) -> AsyncGenerator[str | StepEvent | AskResponse, None]:
        """What happens step by step, what of the answer there is so far, each time longer, and last the answer itself."""
        check(request)
        async with aclosing((self._deep if request.deep else self._read).stream(request)) as parts:
            async for part in parts:
                yield part


def check(request: AskRequest) -> None:
    """Invalid for what would have no effect: an option must not be passed over in silence."""
    if not request.deep:
        given = {
            "session": request.session is not None,
            "only": request.only is not None,
            "update": not request.update,
            "merge": not request.merge,
        }
        if wrong := [name for name, is_given in given.items() if is_given]:
            raise _refused(wrong, 'is for "deep": true')
        if request.steps is None and (wrong := _budgets(request)):
            raise _refused(wrong, 'is for questions of several steps: "deep": true, or "steps"')


def _budgets(request: AskRequest) -> list[str]:
    return [name for name in ("max_calls", "max_tokens", "timeout_s") if getattr(request, name) is not None]


def _refused(fields: list[str], message: str) -> Invalid:
    return Invalid(f"{fields[0]} {message}.", errors=[FieldError(field=field, message=message) for field in fields])
