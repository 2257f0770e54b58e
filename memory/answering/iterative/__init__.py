"""Iterative retrieval: retrieval and a model's thought alternate until a thought answers (IRCoT, arXiv 2212.10509).

HippoRAG 1 combines it with its graph (section 4.2): the graph finds what one question leads to, and a thought names facts that
only the passages contain and the next query is about. `replay_iterative_step` repeats a step from its record.
`memory.answering.qa_reader` writes the answer from the merged passages.
"""
