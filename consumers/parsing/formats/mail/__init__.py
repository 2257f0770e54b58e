"""E-mail, as programs keep it."""
