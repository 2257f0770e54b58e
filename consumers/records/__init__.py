"""Records: documents that were parsed elsewhere, with their extractions and vectors. One Arrow schema, its writer and its
reader.

docs/reference/records.md describes the format. Like the rest of `consumers`, this package does not depend on the store or
the retrieval method.
"""
