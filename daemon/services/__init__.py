"""The services that the API's routes call (queries, documents, progress, transfer); they use the store and the pipeline."""
