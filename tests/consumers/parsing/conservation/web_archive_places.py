"""Archives of web pages: the places outside their pages (see the table of HTML). Cited by sections of RFC 2557."""

from tests.consumers.parsing.conservation.places import FormatTable, Words

PLACES = {
    "title": "5", "body": "5", "frame": "6", "subject": "4.1", "picture by address": "5", "picture by content id": "8.3",
    "background": "5", "other part": "5",
}  # fmt: skip


def part(kind: str, content: str, *headers: str) -> str:
    return "\r\n".join(("--b", f"Content-Type: {kind}", *headers, "", content, ""))


def write(words: Words) -> bytes:
    images = ""
    if name := words.get("picture by address"):
        images += f"<img src='img/{name}.png'>"
    if name := words.get("picture by content id"):
        images += f"<img src='cid:{name}@a'>"
    page = f"<html><head><title>{words.get('title', 'a')}</title></head><body><p>The {words.get('body', 'end')}</p>{images}"
    parts = part("text/html; charset=utf-8", page, "Content-Location: http://a.example/b/page.html")
    if "frame" in words:
        parts += part("text/html", f"<p>The {words['frame']} turns.</p>")
    for place, header in (
        ("picture by address", "Content-Location: http://a.example/b/img/{}.png"),
        ("picture by content id", "Content-ID: <{}@a>"),
        ("background", "Content-Location: http://a.example/{}.png"),
    ):
        if place in words:
            parts += part("image/png", "YQ==", "Content-Transfer-Encoding: base64", header.format(words[place]))
    if "other part" in words:
        parts += part("application/x-a", "a", f"Content-Location: http://a.example/{words['other part']}")
    head = f"From: <Saved by Blink>\r\nSubject: {words.get('subject', 'a')}\r\nMIME-Version: 1.0\r\n"
    return f'{head}Content-Type: multipart/related; type="text/html"; boundary="b"\r\n\r\n{parts}--b--\r\n'.encode()


TABLE = FormatTable("page.mhtml", "RFC 2557", PLACES, write)
