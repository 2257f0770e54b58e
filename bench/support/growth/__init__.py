"""The store that `bench growth` measures, its steps, and what must hold of them."""
