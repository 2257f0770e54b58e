"""What sections of the configuration are made of: their base class, kinds of value, and checks against the machine."""
