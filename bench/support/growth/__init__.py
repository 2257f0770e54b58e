"""The store that `bench growth` measures, its steps, and its conditions."""
