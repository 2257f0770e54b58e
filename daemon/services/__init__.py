"""What the API's ports do: queries, documents, progress and transfer over the store and the pipeline."""
