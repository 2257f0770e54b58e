"""Records: documents that were read elsewhere, with their extractions and vectors. One Arrow schema, its writer and its reader.

docs/reference/records.md describes the format. Like the rest of `consumers`, this knows neither the store nor the method.
"""
