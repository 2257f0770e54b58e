"""Turns a file into documents: opens it safely, detects its format, parses it and splits the text into passages."""

from consumers.parsing.file_name import parses_alike
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.parse_file import parse_data, parse_file
from consumers.parsing.regular_file import ParseSummary

__all__ = ["Limits", "NotADocument", "ParseSummary", "Unreadable", "parse_data", "parse_file", "parses_alike"]
