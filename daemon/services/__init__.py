"""The services that the API's routes call: queries, documents, progress and transfer, over the store and the pipeline."""
