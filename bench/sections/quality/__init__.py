"""Quality: recall, triples, languages, content of pages."""
