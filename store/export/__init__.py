"""Exports the living memory as JSON lines or GraphML, in an order that depends only on its content."""
