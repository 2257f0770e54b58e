"""From a file to documents: opened safely, its format detected, parsed, split into passages."""

from consumers.parsing.file_name import certainly_reads_alike
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.parse_file import parse_data, parse_file
from consumers.parsing.regular_file import ParseSummary

__all__ = ["Limits", "NotADocument", "ParseSummary", "Unreadable", "certainly_reads_alike", "parse_data", "parse_file"]
