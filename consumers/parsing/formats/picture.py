"""Picture files: OCR reads their text, page by page."""

from functools import partial

from consumers.omissions import Omissions
from consumers.parsing.limits import Limits, PictureError, WrongKind
from consumers.parsing.ocr.images import frame_count, frame_of, is_icon
from consumers.splitting import ParsedText, Picture


def parse_picture(data: bytes, limits: Limits, _omissions: Omissions) -> ParsedText:
    try:
        count = frame_count(data)
        is_small = count == 1 and is_icon(data)
    except PictureError as error:
        message = f"a picture that cannot be opened: {error}; copy it again, or exclude it"
        raise WrongKind(message) from error
    limits.check_pages(count)
    if is_small:
        raise WrongKind("a picture too small to be read by OCR; exclude it, or add its text as a file")
    if count == 1:
        pictures = [Picture(lambda: data, page=1, is_page=True)]
    else:
        pictures = [Picture(partial(frame_of, data, at), page=at + 1, is_page=True) for at in range(count)]
    return ParsedText((), pictures=tuple(pictures), without_pictures="a picture")
