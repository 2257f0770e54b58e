"""Implements the API's ports: queries, documents, progress and transfer, over the store and the pipeline."""
