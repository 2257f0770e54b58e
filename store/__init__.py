"""The store: LanceDB tables, the commit log, the live graph, and search over vectors and text."""
