"""Writes a section's tables into docs/explanation/benchmarks.md, between its two marker comments."""

import re
from pathlib import Path

from bench.support.data import ROOT

PAGE = ROOT / "docs" / "explanation" / "benchmarks.md"


def write_section(name: str, tables: str, taken: str, page: Path = PAGE) -> None:
    """Replaces the text between `<!-- bench NAME -->` and `<!-- end -->`.

    Raises ValueError if the page has no such markers.
    """
    text = page.read_text("utf-8")
    block = f"<!-- bench {name} -->\nMeasured on {taken}.\n\n{tables.strip()}\n<!-- end -->"
    replaced, count = re.subn(
        rf"<!-- bench {re.escape(name)} -->.*?<!-- end -->", lambda _: block, text, count=1, flags=re.DOTALL
    )
    if not count:
        raise ValueError(f"{page.name} has no place for the section {name}; add <!-- bench {name} --> and <!-- end -->")
    page.write_text(replaced, "utf-8")
