"""What makes a commit one atomic step: the commit log, the plan of a change, migrations and locks."""
