"""The memory that `bench million` measures, its steps, and what must hold of them."""
