"""The working memory of a deep question: HGMem (arXiv 2512.23959) on one snapshot of the live graph.

`deep.ask_deep` answers a question in steps: judge, raise concerns, retrieve, update and insert points, merge points. At the
end, the model answers from the points and their passages. `trace` contains the data classes. See
docs/explanation/working-memory.md.
"""
