"""Types for questions to a model: `ask` with its steps and sessions, chat completions, the judge of answers."""
