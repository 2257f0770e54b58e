"""From a batch to the exact change that it makes, and to the rows that write it down."""
