"""Iterative retrieval: retrieve, one thought, retrieve by the thought, until a thought answers (IRCoT, arXiv 2212.10509).

HippoRAG 1 is combined with it (its section 4.2): the graph finds what one question leads to, and a thought names what only
the passages say and the next passages are about. `replay_iterative_step` makes a step again from its record.
`memory.answering.qa_reader` writes the answer from the merged passages.
"""
