"""What is answered about documents: adding, listing, showing, their states, and what waits to be read."""
