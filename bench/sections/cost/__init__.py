"""What it takes: time, memory, disk, and how that grows."""
