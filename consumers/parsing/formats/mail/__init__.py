"""E-mail in the file formats of mail programs."""
