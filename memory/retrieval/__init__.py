"""From a query to ranked passages: modes, linking, seeds, recognition memory, Personalized PageRank."""
