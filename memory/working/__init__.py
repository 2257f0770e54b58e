"""The deep working memory: HGMem (arXiv 2512.23959) over one snapshot of the live graph.

`types` is what travels, `deep` the door. A question goes through steps: judge, concerns, retrieval, update and insertion,
merging; at the end the model answers from the points and their passages. See docs/working-memory.md.
"""
