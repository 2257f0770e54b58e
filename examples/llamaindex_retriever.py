"""hippod as a retriever of LlamaIndex: `HippodRetriever(token="…").retrieve("Who built the rain gauge?")`.

Needs llama-index-core and httpx. Without `base_url` it uses the Unix socket `socket`; over TCP hippod requires a token.
"""

from typing import Any

import httpx
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode


class HippodRetriever(BaseRetriever):
    """Returns passages, best first. `options` are further fields of `POST /v1/query`, such as `{"scope": {"labels":
    ["hr"]}}`."""

    def __init__(
        self, base_url: str = "", token: str = "", socket: str = "/run/hippod/hippod.sock", k: int = 5, **options: Any
    ) -> None:
        transport = None if base_url else httpx.HTTPTransport(uds=socket)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(transport=transport, base_url=base_url or "http://localhost", headers=headers)
        self._options = {"k": k, **options}
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        body = {"query": query_bundle.query_str, **self._options}
        answer = self._client.post("/v1/query", json=body, timeout=120)
        answer.raise_for_status()
        return [
            NodeWithScore(node=TextNode(id_=each["id"], text=each.pop("text"), metadata=each), score=each["score"])
            for each in answer.json()["passages"]
        ]
