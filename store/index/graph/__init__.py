"""The graph as a random walk sees it: one symmetric matrix of edge weights over all phrases, then all passages.

A product with it is all that PageRank asks for, many times a query. The bases of a snapshot's matrices are joined into one
CSR the first time they are walked, and that is shared by all snapshots which have the same bases; what changed since lies in
layers, which are shared too but for the last. The sum of the products is exact: joining adds nothing up but weights that lie
between the same two nodes.
"""
