"""Where documents come from, as the daemon runs it: one file or folder a kind, and `registry`, which lists the kinds."""

# The configuration is made from the registry, and a kind's section from the configuration's types: the package that is
# imported first imports the other, so that either order works.
import daemon.config  # noqa: F401
