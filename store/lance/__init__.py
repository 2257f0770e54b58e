"""Access to LanceDB and its files: tables, schemas, old versions, incomplete writes."""
