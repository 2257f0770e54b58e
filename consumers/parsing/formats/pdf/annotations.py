"""Text of a PDF outside its pages' content: form values, comments, alternative texts, attachments, bookmarks."""

import ctypes
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pypdfium2.raw as pdfium

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.limits import Limits
from consumers.parsing.outline import comment_text
from consumers.splitting import Attachment

_MAX_ITEMS = 10_000
"""Maximum number of annotations and of structure elements visited on a page."""
_MAX_TEXT_BYTES = 1 << 20
_CHECKED_BOXES = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
_WITHOUT_TEXT = (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP)
_PASSWORD = 1 << 13
_TAG = re.compile(r"<[^<>]*>")
_WORD = re.compile(r"\w+")


class Attachments:
    """Collects the files in a document, up to a total size."""

    def __init__(self, limits: Limits, omissions: Omissions) -> None:
        self.found: list[Attachment] = []
        self._room = limits.unpacked_bytes
        self._omissions = omissions

    def add_embedded(self, document: Any) -> None:
        """Adds the files that are embedded in the document (ISO 32000-1, 7.11.4)."""
        for at in range(min(pdfium.FPDFDoc_GetAttachmentCount(document.raw), _MAX_ITEMS)):
            self.add(pdfium.FPDFDoc_GetAttachment(document.raw, at))

    def add(self, attachment: Any, description: str = "") -> None:
        name = _text(pdfium.FPDFAttachment_GetName, attachment) if attachment else ""
        size = ctypes.c_ulong()
        if not attachment or not pdfium.FPDFAttachment_GetFile(attachment, None, 0, size) or size.value > self._room:
            about = f"{name} ({description})" if name and description else name or description or "without a name"
            self._omissions.add(OmissionKind.ATTACHMENT, about)
            return
        self._room -= size.value
        buffer = ctypes.create_string_buffer(size.value)
        pdfium.FPDFAttachment_GetFile(attachment, buffer, size.value, size)
        self.found.append(Attachment(name or "attachment", buffer.raw[: size.value], description))


def field_values(page: Any, forms: Any) -> Iterator[str]:
    """Yields the filled form fields of a page as "name: value" (ISO 32000-1, 12.7)."""
    for annotation in _annotations(page):
        if pdfium.FPDFAnnot_GetSubtype(annotation) != pdfium.FPDF_ANNOT_WIDGET:
            continue
        kind = pdfium.FPDFAnnot_GetFormFieldType(forms, annotation)
        if (
            kind == pdfium.FPDF_FORMFIELD_PUSHBUTTON
            or pdfium.FPDFAnnot_GetFormFieldFlags(forms, annotation) & _PASSWORD
        ):
            continue
        if kind in _CHECKED_BOXES and not pdfium.FPDFAnnot_IsChecked(forms, annotation):
            continue
        name = _text(pdfium.FPDFAnnot_GetFormFieldAlternateName, forms, annotation)
        name = name or _text(pdfium.FPDFAnnot_GetFormFieldName, forms, annotation).rpartition(".")[2]
        value = _text(pdfium.FPDFAnnot_GetFormFieldValue, forms, annotation)
        if kind in _CHECKED_BOXES:
            value = _text(pdfium.FPDFAnnot_GetFormFieldExportValue, forms, annotation) or value or "yes"
        if value:
            yield f"{name}: {value}" if name else value


def comments(page: Any, attachments: Attachments) -> Iterator[str]:
    """Yields the comments that users added to a page (ISO 32000-1, 12.5). Adds the files attached to the page to
    `attachments`."""
    for annotation in _annotations(page):
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        text = _string(annotation, b"Contents") or _TAG.sub(" ", _string(annotation, b"RC")).strip()
        if kind == pdfium.FPDF_ANNOT_FILEATTACHMENT:
            attachments.add(pdfium.FPDFAnnot_GetFileAttachment(annotation), text)
        elif text and kind != pdfium.FPDF_ANNOT_WIDGET and kind not in _WITHOUT_TEXT:
            is_shown = kind == pdfium.FPDF_ANNOT_FREETEXT
            yield text if is_shown else comment_text(text, _string(annotation, b"T"))


def draw_annotations(page: Any) -> bool:
    """Makes the appearances of a page's annotations (ISO 32000-1, 12.5.5) part of the page's content. Takes effect when the
    page is loaded again.

    Returns False if nothing changed.
    """
    if not any(pdfium.FPDFAnnot_HasKey(each, b"AP") for each in _annotations(page)):
        return False
    return bool(pdfium.FPDFPage_Flatten(page.raw, pdfium.FLAT_NORMALDISPLAY) == pdfium.FLATTEN_SUCCESS)


def unknown_lines(text: str, known: Iterable[str]) -> Iterator[str]:
    """Yields the lines of a text that contain a word not in `known`."""
    words = {word for each in known for word in _WORD.findall(each)}
    for line in text.splitlines():
        if not words.issuperset(_WORD.findall(line)):
            yield clean_text(line).strip()


def alternative_texts(page: Any) -> Iterator[str]:
    """Yields the alternative texts of a page's figures (ISO 32000-1, 14.9.3)."""
    tree = pdfium.FPDF_StructTree_GetForPage(page.raw)
    if not tree:
        return
    try:
        count = pdfium.FPDF_StructTree_CountChildren(tree)
        stack = [pdfium.FPDF_StructTree_GetChildAtIndex(tree, at) for at in reversed(range(min(count, _MAX_ITEMS)))]
        left = _MAX_ITEMS
        while stack and left:
            left -= 1
            element = stack.pop()
            if not element:
                continue
            if text := _text(pdfium.FPDF_StructElement_GetAltText, element):
                yield text
            children = min(pdfium.FPDF_StructElement_CountChildren(element), _MAX_ITEMS)
            stack += [pdfium.FPDF_StructElement_GetChildAtIndex(element, at) for at in reversed(range(children))]
    finally:
        pdfium.FPDF_StructTree_Close(tree)


def report_xfa_form(document: Any, omissions: Omissions) -> None:
    """Reports an XFA form, which PDFium does not parse."""
    if pdfium.FPDF_GetXFAPacketCount(document.raw) > 0:
        omissions.add(OmissionKind.EMBEDDED, "a form in XFA")


def bookmarks(document: Any) -> Iterator[str]:
    """Yields the titles of the document's outline (ISO 32000-1, 12.3.3)."""
    for number, bookmark in enumerate(document.get_toc()):
        if number == _MAX_ITEMS:
            return
        yield " ".join(clean_text(bookmark.get_title() or "").split())


def _annotations(page: Any) -> Iterator[Any]:
    for at in range(min(pdfium.FPDFPage_GetAnnotCount(page.raw), _MAX_ITEMS)):
        annotation = pdfium.FPDFPage_GetAnnot(page.raw, at)
        if annotation:
            try:
                yield annotation
            finally:
                pdfium.FPDFPage_CloseAnnot(annotation)


def _string(annotation: Any, key: bytes) -> str:
    return _text(pdfium.FPDFAnnot_GetStringValue, annotation, key)


def _text(read: Any, *arguments: Any) -> str:
    """Returns the text that the PDFium function `read` writes into a UTF-16 buffer, or ""."""
    kind = read.argtypes[len(arguments)]
    size = read(*arguments, None, 0)
    if not 2 < size <= _MAX_TEXT_BYTES:
        return ""
    buffer = ctypes.create_string_buffer(size)
    if isinstance(given := read(*arguments, ctypes.cast(buffer, kind), size), int) and given > size:
        return ""
    return clean_text(buffer.raw.decode("utf-16-le", "replace").rstrip("\0")).strip()
