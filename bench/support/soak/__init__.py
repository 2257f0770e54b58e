"""The parts of the long soak (`bench.long_soak`): load, samples, growth and plot."""
