"""`POST /v1/judge`."""

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.access.identity import identity_of
from daemon.api.access.rights import Need, needs
from daemon.api.context import ApiContext
from daemon.api.middleware.disconnect import cancel_on_stop
from daemon.api.openapi import json_body, problems
from daemon.api.routes.questions import NO_MODEL_DETAIL
from daemon.api.validation import read_model
from daemon.contract.answering.judge import JudgeRequest, JudgeResponse
from daemon.contract.http.routes import Route
from daemon.errors import NotConfigured


def add_routes(app: FastAPI, context: ApiContext) -> None:
    @app.post(
        Route.JUDGE,
        response_model=JudgeResponse,
        responses=problems(400, 408, 409, 413, 415, 422, 502, 503),
        openapi_extra=json_body(JudgeRequest),
        summary="Have the model judge an answer, or compare two",
    )
    @needs(Need.READ)
    async def judge(request: Request) -> Response:
        with context.body_reservation(request) as reservation:
            wanted = await read_model(request, JudgeRequest, reservation, context.limits)
            ports = await context.memory(request)
            if ports.judge is None:
                raise NotConfigured(NO_MODEL_DETAIL)
            with context.asks.slot(identity_of(request.scope)):
                return responses.json_response(await cancel_on_stop(context.stopping, ports.judge.judge(wanted)))
