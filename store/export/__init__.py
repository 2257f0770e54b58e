"""Exports the live memory as JSON lines or GraphML, in an order that depends on its content alone."""
