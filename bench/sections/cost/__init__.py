"""The cost of hippod: time, memory, disk, and their growth."""
