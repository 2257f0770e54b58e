"""External programs for formats that no library reads. The programs run confined, as children of the parsing
process."""
