"""Documents and passages as resources: `hippod://document/<URI>` and `hippod://passage/<id>`, both percent-encoded."""

import base64
import binascii
from urllib.parse import quote, unquote

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    Annotations,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from daemon.contract.choices import DocumentState
from daemon.contract.documents import DocumentEntry, DocumentList, ShowDocument, ShowPassage
from daemon.contract.http.routes import ProblemType, Route, document_path
from daemon.mcp.daemon_client import CallError, DaemonClient, validate_answer
from daemon.mcp.tools import PASSAGES_MAX, SHOW_RESPONSE

DOCUMENT = "hippod://document/"
PASSAGE = "hippod://passage/"
PAGE_DOCUMENTS = 100
TEXT = "text/plain"

TEMPLATES = ListResourceTemplatesResult(
    resource_templates=[
        ResourceTemplate(
            uri_template=DOCUMENT + "{uri}",
            name="document",
            title="A document of the memory",
            description="The text of a document, by its URI, percent-encoded.",
            mime_type=TEXT,
        ),
        ResourceTemplate(
            uri_template=PASSAGE + "{id}",
            name="passage",
            title="A passage of the memory",
            description="The text of one passage, by the id that search gives.",
            mime_type=TEXT,
        ),
    ]
)


def document_uri(uri: str) -> str:
    return DOCUMENT + quote(uri, safe="")


async def list_documents(client: DaemonClient, cursor: str | None) -> ListResourcesResult:
    """Returns a page of the indexed documents, sorted by URI."""
    params: dict[str, str | int] = {"state": DocumentState.INDEXED.value, "limit": PAGE_DOCUMENTS}
    if cursor is not None:
        params["after"] = _decode_cursor(cursor)
    found = await client.call(DocumentList, "GET", Route.DOCUMENTS, params=params)
    return ListResourcesResult(
        resources=[_resource(document) for document in found.documents],
        next_cursor=None if found.next is None else base64.urlsafe_b64encode(found.next.encode()).decode(),
    )


def _decode_cursor(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise MCPError(INVALID_PARAMS, "The cursor is invalid; begin without one.") from None


def _resource(document: DocumentEntry) -> Resource:
    changed = document.modified_at or document.committed_at
    return Resource(
        uri=document_uri(document.uri),
        name=document.title or unquote(document.uri.rstrip("/").rpartition("/")[2]) or document.uri,
        description=f"{document.uri}, {document.passages} passage{'' if document.passages == 1 else 's'}",
        mime_type=TEXT,
        annotations=None if changed is None else Annotations(last_modified=changed.isoformat()),
    )


async def read_resource(client: DaemonClient, uri: str) -> ReadResourceResult:
    """Returns the text of a document or passage resource."""
    prefix = next((each for each in (DOCUMENT, PASSAGE) if uri.startswith(each)), None)
    if prefix is None or uri == prefix:
        raise _unknown(uri)
    try:
        key = unquote(uri.removeprefix(prefix))
        shown = validate_answer(
            SHOW_RESPONSE, await client.fetch("GET", document_path(key), params={"limit": PASSAGES_MAX})
        )
    except CallError as error:
        raise (_unknown(uri) if error.type == ProblemType.NOT_FOUND else error) from None
    if prefix == DOCUMENT and isinstance(shown, ShowDocument):
        text = "\n\n".join(passage.text for passage in shown.passages)
    elif prefix == PASSAGE and isinstance(shown, ShowPassage):
        text = f"{shown.title}\n\n{shown.text}" if shown.title else shown.text
    else:
        raise _unknown(uri)
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text, mime_type=TEXT)])


def _unknown(uri: str) -> MCPError:
    return MCPError(INVALID_PARAMS, "The memory has no such document or passage.", {"uri": uri})
