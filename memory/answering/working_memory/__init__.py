"""The working memory of a deep question: HGMem (arXiv 2512.23959) over one snapshot of the live graph.

`deep.ask_deep` answers a question in steps: judge, raise concerns, retrieve, update and insert points, merge points; at the end
the model answers from the points and their passages. `records` has the data. See docs/explanation/working-memory.md.
"""
