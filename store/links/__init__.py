"""What documents are called, and which document a link leads to."""
