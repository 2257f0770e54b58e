"""Creates the pool of parsing processes from the configuration and the installed programs."""

from consumers.parsing import Limits
from consumers.parsing.programs.installed import find_programs
from daemon.config.sections import Parsing
from daemon.parser_pool.pool import ParserPool

_PROGRAM_SHARE = 0.75
"""Share of a document's time limit that one run of an external program may take. So the process can report that it did."""


def parser_pool(parsing: Parsing) -> ParserPool:
    limits = Limits(
        program_seconds=_PROGRAM_SHARE * parsing.time_limit_s,
        ocr="off" if parsing.ocr == "off" else "later",
        programs=find_programs(parsing.ocr, parsing.ocr_languages),
    )
    return ParserPool(parsing.workers, parsing.memory_bytes, parsing.time_limit_s, limits=limits)
