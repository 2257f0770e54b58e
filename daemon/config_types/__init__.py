"""The parts of configuration sections: base class, kinds of values, and checks against the machine."""
