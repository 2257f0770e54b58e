"""What is found and read: recall, triples, languages, pages."""
