"""Shared by the sections: synthetic documents, a scripted model server, a large graph, single adds, an example."""
