"""Adds the text of pictures to a document by OCR, one picture at a time, after the document's other content was parsed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import blake2b

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.limits import Limits, NotADocument, PictureError, Unreadable
from consumers.parsing.ocr.tesseract import Paragraph, mean_confidence, recognise
from consumers.parsing.programs.installed import KNOWN_PROGRAMS, OCR
from consumers.parsing.programs.run import ProgramFailed
from consumers.splitting import ParsedText, Picture, TextBlock

_MAX_PICTURES = 1_000
"""Maximum number of pictures of one document that are read. Scanned pages do not count."""


class AwaitsRecognition(Exception):
    """All text of the document is in pictures, which a later run reads."""


class TextRecognition:
    """Reads the pictures of one file's documents. With `Limits.ocr` "later", only counts the pictures that a later run
    reads."""

    def __init__(self, limits: Limits, progress: Callable[[], None]) -> None:
        """`progress` is called before each picture and, while OCR reads it, every few seconds."""
        self.awaited = 0
        """Number of pictures left to a later run."""
        self._limits = limits
        self._progress = progress

    def with_recognised_text(self, parsed: ParsedText, omissions: Omissions) -> ParsedText:
        """Returns the document with the text of its pictures. Reports unread pictures, and the confidence of the recognised
        text.

        If the document has no other text, raises AwaitsRecognition, or NotADocument or Unreadable if its pictures cannot be
        read.
        """
        if not parsed.pictures:
            return parsed
        limits = self._limits
        if limits.ocr == "now" and OCR in limits.programs:
            return self._read(parsed, omissions)
        if limits.ocr == "later" and OCR in limits.programs:
            awaited = sum(map(_is_legible, parsed.pictures))
            self.awaited += awaited
            if awaited and not parsed.blocks:
                raise AwaitsRecognition
        elif not parsed.blocks:
            raise _without_program(parsed, limits)
        for picture in parsed.pictures:
            _report_unread(picture, omissions)
        return parsed

    def _read(self, parsed: ParsedText, omissions: Omissions) -> ParsedText:
        found = []
        for picture, paragraphs in self._recognised(parsed, omissions):
            certain = [each for each in paragraphs if each.is_certain]
            if certain:
                found.append((picture, certain))
            else:
                _report_unread(picture, omissions)
            for each in paragraphs:
                if not each.is_certain:
                    omissions.add(OmissionKind.UNCERTAIN, each.text)
        blocks = list(parsed.blocks)
        for picture, certain in reversed(found):  # from the end, so that the earlier positions stay valid
            blocks[picture.before : picture.before] = [
                TextBlock(each.text, picture.headings, page=picture.page, sheet=picture.sheet) for each in certain
            ]
        if not blocks:
            raise NotADocument(
                f"{parsed.without_pictures}, in which OCR finds no text; exclude it, or add its text as a file",
                _code(parsed),
            )
        if found:
            mean = mean_confidence([each for _, certain in found for each in certain])
            identity = self._limits.programs[OCR].identity
            omissions.add(OmissionKind.RECOGNISED, f"{identity}, mean confidence {mean:.0f} %", len(found))
        return replace(parsed, blocks=tuple(blocks), pictures=())

    def _recognised(self, parsed: ParsedText, omissions: Omissions) -> Iterator[tuple[Picture, list[Paragraph]]]:
        """Yields each picture with its paragraphs. A picture that occurs several times, such as a letterhead, is read
        once."""
        from consumers.parsing.ocr.images import for_recognition, is_icon  # loads libraries for pictures

        seen: set[bytes] = set()
        others = 0
        for picture in parsed.pictures:
            self._progress()
            others += not picture.is_page
            if others > _MAX_PICTURES:
                omissions.add(OmissionKind.TOO_LARGE, f"pictures after the first {_MAX_PICTURES:,}")
                return
            try:
                image = picture.image()
                digest = blake2b(image, digest_size=16).digest()
                if not picture.is_page and (digest in seen or is_icon(image)):
                    continue
                seen.add(digest)
                yield picture, recognise(for_recognition(image), self._limits, self._progress)
            except PictureError:
                yield picture, []
            except ProgramFailed as error:
                if not parsed.blocks and len(parsed.pictures) == 1:
                    raise Unreadable(f"OCR failed: {error}; retry it, or exclude it", FailureCode.CRASH) from error
                where = picture.name or (f"page {picture.page}" if picture.page else "a picture")
                omissions.add(OmissionKind.OTHER, f"{where}, because OCR failed: {error}")
                yield picture, []


def _is_legible(picture: Picture) -> bool:
    from consumers.parsing.ocr.images import is_icon

    try:
        return picture.is_page or not is_icon(picture.image())
    except PictureError:
        return False


def _report_unread(picture: Picture, omissions: Omissions) -> None:
    if picture.unread is not None:
        omissions.add(picture.unread, picture.name, total=picture.total)


def _without_program(parsed: ParsedText, limits: Limits) -> NotADocument:
    if limits.ocr == "off":
        advice = 'set [parsing] ocr = "auto" to read it by OCR, exclude it, or add its text as a file'
        return NotADocument(f"{parsed.without_pictures}; {advice}", _code(parsed))
    package = KNOWN_PROGRAMS[OCR].package
    return NotADocument(
        f"{parsed.without_pictures}, which hippod reads with Tesseract; install the package {package}, or exclude it",
        FailureCode.NEEDS_OCR,
    )


def _code(parsed: ParsedText) -> FailureCode:
    """Returns the failure code of a document without text. Only scanned pages count as a document, other pictures do not."""
    is_picture = all(picture.unread is OmissionKind.PICTURE for picture in parsed.pictures)
    return FailureCode.NOT_A_DOCUMENT if is_picture else FailureCode.NO_TEXT
