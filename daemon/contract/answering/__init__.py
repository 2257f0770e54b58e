"""What is asked and answered by a model: `ask` with its steps and sessions, chat completions, the judge of answers."""
