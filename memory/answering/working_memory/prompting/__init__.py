"""What the model is asked at each step, from what material, and how the call is made."""
