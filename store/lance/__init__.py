"""Access to LanceDB and its files: tables, schemas, old versions, torn writes."""
