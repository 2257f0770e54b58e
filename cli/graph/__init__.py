"""Writes a neighbourhood of the memory to a file: GraphML, a picture, or a page."""
