"""From a sentence to who does what to whom: tokens, tags, chunks, clauses."""
