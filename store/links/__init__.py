"""Names of documents, and the resolution of links to documents."""
