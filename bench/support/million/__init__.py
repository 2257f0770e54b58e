"""The memory that `bench million` measures, its steps, and its conditions."""
