"""The prompts of each step, their material, and the model call."""
