"""OpenIE: triples and named entities out of passages, by rules or as recorded by someone else."""
