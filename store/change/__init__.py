"""Plans the exact change that a batch makes, and the table rows that record it."""
