"""The daemon and the scripted model of the answering tests, whose answers are drawn here."""

from tests.daemon.services.answering.conftest import asking, running

__all__ = ["asking", "running"]
