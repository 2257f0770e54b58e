"""Checks whether the libraries and programs of the document formats are installed."""

from collections.abc import Iterator
from importlib.util import find_spec

from consumers.parsing.formats.registry import FORMATS
from consumers.parsing.programs.installed import KNOWN_PROGRAMS, OCR, find_programs
from daemon.config import Config
from daemon.contract.finding import Finding


def formats(_config: Config) -> Iterator[Finding]:
    for each in FORMATS:
        if missing := [library for library in each.libraries if find_spec(library) is None]:
            hint = "install hippod again: `make install`, or the package again"
            yield Finding("formats", "fail", f"{each.title} cannot be read without {', '.join(missing)}", hint)
            return
    yield Finding("formats", "ok", ", ".join(each.title for each in FORMATS))


def programs(config: Config) -> Iterator[Finding]:
    """Yields a finding for each external program. A missing program is no problem: documents that need it are skipped."""
    parsing = config.parsing
    found = find_programs(parsing.ocr, parsing.ocr_languages)
    for key, known in KNOWN_PROGRAMS.items():
        program = found.get(key)
        if program is not None and program.missing_languages:
            packages = " ".join(f"tesseract-ocr-{each.replace('_', '-')}" for each in program.missing_languages)
            detail = f"{program.identity}: not installed for {', '.join(program.missing_languages)}"
            yield Finding(known.title, "warn", detail, f"install {packages}, or correct [parsing] ocr_languages")
        elif program is not None:
            yield Finding(known.title, "ok", program.identity)
        elif key == OCR and parsing.ocr == "off":
            yield Finding(known.title, "ok", 'not used: [parsing] ocr = "off"')
        else:
            yield Finding(known.title, "ok", f"not installed: {known.purpose} are skipped; install {known.package}")
