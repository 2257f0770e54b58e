"""Formats answers for the terminal: passages, a written answer, explanations, and steps."""
