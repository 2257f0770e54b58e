"""The benchmark sections, one per file: `run(results)` fills `results` and returns Markdown."""
