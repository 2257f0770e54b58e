"""OpenIE: extracts triples and named entities from passages, by rules or a model; reads recorded extractions."""
