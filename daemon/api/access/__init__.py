"""Who asks, what a request needs, and what of the memory there is for whom. Between the API and the services: every request
passes here once, whatever its route."""
