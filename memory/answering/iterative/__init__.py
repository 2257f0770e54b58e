"""Iterative retrieval: retrieval and a model's thought alternate until a thought answers (IRCoT, arXiv 2212.10509).

HippoRAG 1 combines it with its graph (section 4.2): the graph finds the passages that one question leads to, and a thought
states facts from them, about which the next query asks. `memory.answering.qa_reader` writes
the answer from the merged passages.
"""
