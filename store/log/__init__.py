"""What makes a commit one atomic step: the commit log, migrations and locks."""
