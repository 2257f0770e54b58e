"""External programs for formats that no library reads. They run confined, as children of the parsing process."""
