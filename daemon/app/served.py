"""The services whose methods are routes (`daemon.contract.http.served`), by the name of their port."""

from collections.abc import Mapping

from fastapi import FastAPI

from daemon.api.context import ApiContext
from daemon.api.endpoints import Endpoints
from daemon.services.answering.sessions import SessionService
from daemon.services.documents.document_service import DocumentService
from daemon.services.extraction import ExtractionService
from daemon.services.reencoding import Reencoding

SERVICES: Mapping[str, type] = {
    "documents": DocumentService,
    "extractions": ExtractionService,
    "reencoding": Reencoding,
    "sessions": SessionService,
}


def add_routes(app: FastAPI, context: ApiContext) -> None:
    endpoints = Endpoints(app, context)
    for port, service in SERVICES.items():
        endpoints.add_service(port, service)
