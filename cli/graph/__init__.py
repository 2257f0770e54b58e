"""A neighbourhood of the memory as a file to keep: GraphML, a picture, a page."""
