"""Formats that are text with markup in it."""
