"""Evaluation with questions whose answers are known."""
