"""The living memory as JSON lines or GraphML, in an order that depends on content alone."""
