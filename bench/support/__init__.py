"""What sections share: synthetic documents, a scripted model server, a large graph, single adds, an example."""
