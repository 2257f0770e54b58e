"""Why a passage was found, and the part of the graph around a query."""
