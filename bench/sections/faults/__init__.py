"""Deliberate faults: kills, hostile input, random histories, months of use."""
