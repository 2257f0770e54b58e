"""The daemon and the scripted model of the answering tests; these tests draw their answers."""

from tests.daemon.services.answering.conftest import asking, running

__all__ = ["asking", "running"]
