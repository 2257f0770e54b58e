"""What is measured, a file a section: `run(results)` fills `results` and returns Markdown."""
