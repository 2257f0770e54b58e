"""The graph of the random walk: one symmetric matrix of edge weights over all phrases, followed by all passages.

PageRank uses the matrix only in products, and a query needs many products. The bases of a snapshot's matrices are joined into
one CSR at the first walk; all snapshots with the same bases share this CSR. Later changes form layers; snapshots share all
layers except the last. The product with the graph is exactly the sum of the products with the base and with each layer, because
joining only adds the weights between the same two nodes.
"""
