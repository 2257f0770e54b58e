"""What goes wrong on purpose: kills, hostile input, random histories, months of use."""
