"""Collects blocks under the headings above them, whatever format they come from."""

from collections.abc import Iterable

from consumers.failure_codes import FailureCode
from consumers.omissions import Omissions
from consumers.parsing.limits import NotADocument
from consumers.splitting import TextBlock

_LONGEST_HEADING = 300


class Outline:
    """The blocks so far and the headings that hold at this point. A heading with nothing below it is kept as a block."""

    def __init__(self, text_chars: int, omissions: Omissions) -> None:
        """`text_chars`: the longest text of a document. `omissions` takes what is left out of the blocks."""
        self.omissions = omissions
        self.blocks: list[TextBlock] = []
        self.first_heading = ""
        self._room = text_chars
        self._limit = text_chars
        self._open: list[tuple[int, str]] = []
        self._bare: TextBlock | None = None

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(text for _, text in self._open)

    def heading(
        self, level: int, text: str, *, page: int | None = None, line: int | None = None, sheet: str | None = None
    ) -> None:
        text = " ".join(text.split())
        if not text:
            return
        if len(text) > _LONGEST_HEADING:  # a paragraph in a heading's clothes
            self.text(text, page=page, line=line, sheet=sheet)
            return
        self._close(level)
        self._bare = TextBlock(text, self.headings, page=page, line=line, sheet=sheet)
        self._open.append((level, text))
        if not self.first_heading and not self.blocks:
            self.first_heading = text

    def text(
        self,
        text: str,
        joint: str = "\n\n",
        *,
        page: int | None = None,
        line: int | None = None,
        sheet: str | None = None,
        row: int | None = None,
    ) -> None:
        text = text.strip()
        if not text:
            return
        self._room -= len(text)
        if self._room < 0:
            raise NotADocument(
                f"more than {self._limit:,} characters of text, the most that one document may have; split it up",
                FailureCode.TOO_LARGE,
            )
        self._bare = None
        self.blocks.append(TextBlock(text, self.headings, joint, page, line, sheet, row))

    def include(self, blocks: Iterable[TextBlock], level: int) -> None:
        """Takes over the blocks of another document; its headings begin at `level`."""
        above: tuple[str, ...] = ()
        for block in blocks:
            self._close(level + len(block.headings))
            for depth, heading in enumerate(block.headings):
                if above[: depth + 1] != block.headings[: depth + 1]:
                    self.heading(level + depth, heading, page=block.page, line=block.line, sheet=block.sheet)
                    above = block.headings[: depth + 1]
            above = block.headings
            self.text(block.text, block.joint, page=block.page, line=block.line, sheet=block.sheet, row=block.row)

    def done(self) -> tuple[TextBlock, ...]:
        self._keep_bare(0)
        return tuple(self.blocks)

    def _close(self, level: int) -> None:
        """Ends the headings of this level and below."""
        self._keep_bare(level)
        while self._open and self._open[-1][0] >= level:
            self._open.pop()

    def _keep_bare(self, level: int) -> None:
        """A heading that another of its rank follows at once has no text of its own: it is one."""
        if self._bare is not None and self._open and self._open[-1][0] >= level:
            bare, self._bare = self._bare, None
            self.blocks.append(bare)
