"""The cost of model calls: the ledger, the daily budget, and estimates of what extraction will cost."""
