"""The graph of the random walk: one symmetric matrix of edge weights over all phrases, then all passages.

PageRank needs only products with this matrix, many per query. The bases of a snapshot's matrices are joined into one CSR at
their first walk; all snapshots with the same bases share it. Later changes form layers, which snapshots share too, except the
last. The sum of the products is exact, because joining adds only the weights between equal pairs of nodes.
"""
