"""OpenIE: extracts triples and named entities from passages, by rules or with a model; imports recorded extractions."""
