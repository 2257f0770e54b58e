"""What knows LanceDB and its files: tables, schemas, old versions, torn writes."""
