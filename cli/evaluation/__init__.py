"""Questions with known answers, and how well they were answered."""
