"""Names of documents, and resolution of links to documents."""
