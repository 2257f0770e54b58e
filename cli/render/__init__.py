"""Formats answers as lines of text for users."""
