"""Asks one of the retrievers of examples/, in the environment that has its framework; prints what was found as JSON.

Arguments: langchain or llamaindex, the socket, the TCP address, the token, the question.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

framework, socket, address, token, question = sys.argv[1:]
found: list[Any] = []
for where in ({"socket": socket}, {"base_url": address, "token": token}):
    if framework == "langchain":
        from langchain_retriever import HippodRetriever as OfLangChain

        documents = OfLangChain(k=2, options={"mode": "dense"}, **where).invoke(question)
        found.append([[each.id, each.page_content, each.metadata["source"]] for each in documents])
    else:
        from llamaindex_retriever import HippodRetriever as OfLlamaIndex

        nodes = OfLlamaIndex(k=2, mode="dense", **where).retrieve(question)
        found.append([[each.node.node_id, each.get_content(), each.metadata["document"]] for each in nodes])
print(json.dumps(found))
