"""The document formats: whether the libraries that their parsers need are installed."""

from collections.abc import Iterator
from importlib.util import find_spec

from consumers.parsing.formats.registry import FORMATS
from daemon.config import Config
from daemon.contract.finding import Finding


def formats(_config: Config) -> Iterator[Finding]:
    for each in FORMATS:
        if missing := [library for library in each.libraries if find_spec(library) is None]:
            hint = "install hippod again: `make install`, or the package again"
            yield Finding("formats", "fail", f"{each.title} cannot be read without {', '.join(missing)}", hint)
            return
    yield Finding("formats", "ok", ", ".join(each.title for each in FORMATS))
