"""Internet mail: the places are cited by RFC and section."""

import base64
import quopri

from tests.consumers.parsing.conservation.places import FormatTable, Words

HEADERS = {
    "sender's name": ("RFC 5322 3.4", 'From: "{}" <ann@example.org>'),
    "recipient's name": ("RFC 5322 3.4", "To: {} <bo@example.org>"),
    "copy": ("RFC 5322 3.6.3", "Cc: {}@example.org"),
    "blind copy": ("RFC 5322 3.6.3", "Bcc: {}@example.org"),
    "who sent it": ("RFC 5322 3.6.2", "Sender: {}@example.org"),
    "where to reply": ("RFC 5322 3.6.2", "Reply-To: {}@example.org"),
    "comments": ("RFC 5322 3.6.5", "Comments: {}"),
    "keywords": ("RFC 5322 3.6.5", "Keywords: {}"),
    "folded header": ("RFC 5322 2.2.3", "Organization: The\r\n {}"),
}
SUBJECTS = {
    "subject": ("RFC 5322 3.6.5", "Subject: {}"),
    "encoded subject": ("RFC 2047 2", "Subject: =?iso-8859-1?Q?=FCber_{}?="),
    "subject in UTF-8": ("RFC 6532 3.1", "Subject: über {}"),
}


def part(kind: str, body: bytes | str, *headers: str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    return "\r\n".join((f"Content-Type: {kind}", *headers, "", "")).encode() + data


def several(kind: str, *parts: bytes, boundary: str) -> bytes:
    inside = b"".join(f"--{boundary}\r\n".encode() + each + b"\r\n" for each in parts)
    return part(f'multipart/{kind}; boundary="{boundary}"', inside + f"--{boundary}--\r\n".encode())


def message(subject: str, body: bytes) -> bytes:
    return part(
        "message/rfc822", f"From: cy@example.org\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n".encode() + body
    )


def nested(word: str, depth: int) -> bytes:
    inner = part("text/plain", "Below.")
    for level in range(depth):
        inner = message(word if not level else f"Level {level}", inner)
    return inner


ATTACHED = 'Content-Disposition: attachment; filename="{}"'
PLAIN, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
ORDER = "<p>The order is two sacks of oil. "
PICTURE = part(
    "image/png; name=a.png", "iVBORw0KGgo=", "Content-Transfer-Encoding: base64", "Content-Disposition: inline"
)
PARTS = {
    "text": ("RFC 2046 5.1.3", lambda word: part(PLAIN, f"The {word} turns.")),
    "text behind a picture": ("RFC 2046 5.1.3", lambda word: PICTURE + b"\r\n--outer\r\n" + part(PLAIN, word)),
    "text without a type": ("RFC 2045 5.2", lambda word: f"\r\nThe {word} turns.".encode()),
    "quoted-printable": (
        "RFC 2045 6.7",
        lambda word: part(
            PLAIN, quopri.encodestring(f"ä {word}".encode()), "Content-Transfer-Encoding: quoted-printable"
        ),
    ),
    "base64": (
        "RFC 2045 6.8",
        lambda word: part(PLAIN, base64.encodebytes(f"ä {word}".encode()), "Content-Transfer-Encoding: base64"),
    ),
    "8-bit text declared as ASCII": (
        "RFC 2045 6.2",
        lambda word: part("text/plain; charset=us-ascii", f"{word}ä{word}"),
    ),
    "unknown charset": ("RFC 2046 4.1.2", lambda word: part("text/plain; charset=x-unknown", word)),
    "enriched text": ("RFC 1896", lambda word: part("text/enriched", f"<bold>{word}</bold>")),
    "unknown text": ("RFC 2046 4.1.4", lambda word: part("text/x-notes", word)),
    "page": ("RFC 2854", lambda word: part(HTML, f"<p>The <b>{word}</b> turns.</p>")),
    "page with resources": (
        "RFC 2387 3",
        lambda word: several("related", part(HTML, f"<p>{word}</p>"), PICTURE, boundary="r"),
    ),
    "plain alternative": (
        "RFC 2046 5.1.4",
        lambda word: several(
            "alternative", part(PLAIN, f"{word} turns."), part(HTML, f"<p>{word} turns."), boundary="a1"
        ),
    ),
    "placeholder": (
        "RFC 2046 5.1.4",
        lambda word: several(
            "alternative",
            part(PLAIN, f"No HTML {word}."),
            part(HTML, ORDER),
            boundary="a2",
        ),
    ),
    "page behind a placeholder": (
        "RFC 2046 5.1.4",
        lambda word: several("alternative", part(PLAIN, "See the page."), part(HTML, ORDER + word), boundary="a3"),
    ),
    "word of the page alone": (
        "RFC 2046 5.1.4",
        lambda word: several(
            "alternative",
            part(PLAIN, "Two sacks of lamp oil go to the depot in May."),
            part(HTML, f"<p>Two sacks of lamp oil go to the depot in May. {word}"),
            boundary="a4",
        ),
    ),
    "page alone": ("RFC 2046 5.1.4", lambda word: several("alternative", part(HTML, f"<p>{word}"), boundary="a5")),
    "calendar as alternative": (
        "RFC 6047 2.4",
        lambda word: several(
            "alternative", part(PLAIN, "We meet."), part("text/calendar", f"SUMMARY:{word}"), boundary="a6"
        ),
    ),
    "calendar": (
        "RFC 5545 8.1",
        lambda word: part("text/calendar", f"BEGIN:VCALENDAR\r\nSUMMARY:{word}\r\nEND:VCALENDAR"),
    ),
    "message in a digest": (
        "RFC 2046 5.1.5",
        lambda word: several("digest", message("A digest", part(PLAIN, word)), boundary="d"),
    ),
    "attached message": ("RFC 2046 5.2.1", lambda word: message("Forwarded", part(PLAIN, word))),
    "subject of an attached message": ("RFC 2046 5.2.1", lambda word: message(word, part(PLAIN, "Forwarded."))),
    "message below many": ("RFC 2046 5.2.1", lambda word: nested(word, 3)),
    "message far below": ("RFC 2046 5.2.1", lambda word: nested(word, 9)),
    "why it was not delivered": (
        "RFC 3464 2.1",
        lambda word: part("message/delivery-status", f"Reporting-MTA: dns; a\r\n\r\nDiagnostic-Code: smtp; {word}\r\n"),
    ),
    "headers of a message": ("RFC 6522 4", lambda word: part("text/rfc822-headers", f"Subject: {word}")),
    "part in parts": (
        "RFC 2046 5.1.1",
        lambda word: several("mixed", several("parallel", part(PLAIN, word), boundary="m2"), boundary="m1"),
    ),
    "signed text": (
        "RFC 1847 2.1",
        lambda word: several("signed", part(PLAIN, word), part("application/pgp-signature", "x"), boundary="s1"),
    ),
    "attached text": ("RFC 2183 2.2", lambda word: part(PLAIN, word, ATTACHED.format("a.txt"))),
    "name of attached text": ("RFC 2183 2.3", lambda word: part(PLAIN, "Attached.", ATTACHED.format(f"{word}.txt"))),
    "attached table": (
        "RFC 4180",
        lambda word: part("text/csv", f"Name,Year\r\n{word},1980", ATTACHED.format("a.csv")),
    ),
    "attached page": ("RFC 2183 2.2", lambda word: part("text/html", f"<p>{word}", ATTACHED.format("a.html"))),
    "attached Markdown": ("RFC 7763", lambda word: part("text/markdown", f"# {word}", ATTACHED.format("a.md"))),
    "text of no declared type": (
        "RFC 2046 4.5.1",
        lambda word: part("application/octet-stream", word, ATTACHED.format("a.txt")),
    ),
    "bytes declared as text": (
        "RFC 2046 4.1",
        lambda word: part("text/plain", b"\x00\x01\x02\x03" * 9, ATTACHED.format(f"{word}.txt")),
    ),
    "attachment": ("RFC 2183 2.3", lambda word: part("application/octet-stream", "x", ATTACHED.format(f"{word}.dwg"))),
    "inline attachment": (
        "RFC 2183 2.1",
        lambda word: part("image/png", "x", f"Content-Disposition: inline; filename={word}.png"),
    ),
    "name in the type": ("RFC 2045 5.1", lambda word: part(f"image/png; name={word}.png", "x")),
    "name in another script": (
        "RFC 2231 4",
        lambda word: part("image/png", "x", f"Content-Disposition: attachment; filename*=utf-8''%C3%BC{word}.png"),
    ),
    "text of a file in an attached message": (
        "RFC 2046 5.2.1",
        lambda word: message("Forwarded", part("text/csv", f"Name,Year\r\n{word},1980", ATTACHED.format("b.csv"))),
    ),
    "attached mail": (
        "RFC 2046 4.5.1",
        lambda word: part("application/octet-stream", f"Subject: {word}\r\n\r\nBelow.", ATTACHED.format("b.eml")),
    ),
    "file in an alternative": (
        "RFC 2046 5.1.4",
        lambda word: several(
            "alternative",
            part(PLAIN, "Two sacks of oil."),
            several(
                "mixed",
                part(HTML, "<p>Two sacks of oil."),
                part("text/csv", f"Name,Year\r\n{word},1980", ATTACHED.format("c.csv")),
                boundary="a8",
            ),
            boundary="a7",
        ),
    ),
    "description of a part": (
        "RFC 2045 8",
        lambda word: part("image/png", "x", f"Content-Description: the {word}"),
    ),
}


def write(words: Words) -> bytes:
    headers = [line.format(words[place]) for place, (_, line) in HEADERS.items() if place in words]
    subjects = [line.format(words[place]) for place, (_, line) in SUBJECTS.items() if place in words]
    parts = [make(words[place]) for place, (_, make) in PARTS.items() if place in words]
    # A message has one subject: the others go into messages that are attached.
    parts += [part("message/rfc822", f"{line}\r\n\r\nA text.") for line in subjects[1:]]
    head = ["Date: Thu, 9 May 2024 09:00:00 +0200", *headers, *subjects[:1], "MIME-Version: 1.0", ""]
    return "\r\n".join(head).encode() + several("mixed", *parts, boundary="outer")


TABLE = FormatTable(
    "letter.eml",
    "RFC 5322, RFC 2045 to 2049 and their extensions",
    {place: section for table in (HEADERS, SUBJECTS, PARTS) for place, (section, *_) in table.items()},
    write,
)
