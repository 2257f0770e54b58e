"""Pictures are read in a run of their own, after the document's other text; a later version of the document ends it."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from shutil import which

import pytest

from bench.support.scanned_pages import encoded, scanned_pages
from consumers.parsing import Limits, ParseSummary
from consumers.parsing.programs.installed import find_programs
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from daemon.parser_pool.pool import ParserPool, SetAside, Turn

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(which("tesseract") is None, reason="Tesseract is not installed (Debian: tesseract-ocr)"),
]


def test_scanned_file_is_parsed_by_ocr_in_a_later_run(tmp_path: Path) -> None:
    scan = tmp_path / "scan.pdf"
    scan.write_bytes(encoded({"table": scanned_pages()["table"]}, "PDF"))
    limits = Limits(ocr="later", programs=find_programs("auto", ("eng",)), program_seconds=120)

    async def work() -> None:
        pool = ParserPool(1, limits=limits)

        async def run(turn: Turn) -> list[ParsedDocument | ParseSummary]:
            stream = pool.parse(bytes(scan), scan.as_uri(), SplitSettings(), turn)
            async with aclosing(stream) as items:
                return [item async for item in items]

        try:
            [summary] = await run(Turn())
            assert isinstance(summary, ParseSummary) and summary.awaits_ocr
            with pytest.raises(SetAside):
                await run(Turn(recognise=True, is_superseded=lambda: True))
            document, summary = await run(Turn(recognise=True))
            assert isinstance(summary, ParseSummary) and not summary.awaits_ocr
            assert isinstance(document, ParsedDocument) and "North pier" in document.passages[0].text
        finally:
            await pool.children.close()

    asyncio.run(work())
