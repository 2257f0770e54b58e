"""hippod as a retriever of LangChain: `HippodRetriever(token="…").invoke("Who built the rain gauge?")`.

Needs langchain-core and httpx. Without `base_url` it uses the Unix socket `socket`; over TCP hippod requires a token.
"""

from typing import Any

import httpx
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever


class HippodRetriever(BaseRetriever):
    """Returns passages, best first. `options` are further fields of `POST /v1/query`, such as `{"scope": {"labels":
    ["hr"]}}`."""

    base_url: str = ""
    token: str = ""
    socket: str = "/run/hippod/hippod.sock"
    k: int = 5
    options: dict[str, Any] = {}  # noqa: RUF012 - a field of pydantic's, copied for each retriever

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - the framework hands it over
    ) -> list[Document]:
        transport = None if self.base_url else httpx.HTTPTransport(uds=self.socket)
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with httpx.Client(transport=transport, base_url=self.base_url or "http://localhost", headers=headers) as client:
            answer = client.post("/v1/query", json={"query": query, "k": self.k, **self.options}, timeout=120)
            answer.raise_for_status()
        return [
            Document(page_content=each.pop("text"), metadata=each | {"source": each["document"]}, id=each["id"])
            for each in answer.json()["passages"]
        ]
