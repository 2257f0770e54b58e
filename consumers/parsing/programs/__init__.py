"""External programs that read formats for which no library exists. They run confined, as children of the parsing process."""
