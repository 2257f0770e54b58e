"""Calendars: the places are cited by sections of RFC 5545."""

from tests.consumers.parsing.conservation.places import FormatTable, Words, text_table

HEAD = {"name of the calendar": ("3.8.8.2", "X-WR-CALNAME:The {}"), "program": ("3.7.3", "PRODID:-//{}//EN")}
BODY = {
    "summary": ("3.8.1.12", "BEGIN:VEVENT\nSUMMARY:The {}\nEND:VEVENT"),
    "second summary": ("3.8.1.12", "BEGIN:VEVENT\nSUMMARY:One\nSUMMARY:The {}\nEND:VEVENT"),
    "description": ("3.8.1.5", "BEGIN:VEVENT\nSUMMARY:One\nDESCRIPTION:It is\\n{}\nEND:VEVENT"),
    "folded line": ("3.1", "BEGIN:VEVENT\nDESCRIPTION:It is \n {}\nEND:VEVENT"),
    "line without a name": ("3.1", "BEGIN:VEVENT\nDESCRIPTION:It is\nthe {}\nEND:VEVENT"),
    "location": ("3.8.1.7", "BEGIN:VEVENT\nLOCATION;LANGUAGE=en:Old {}\\, mill\nEND:VEVENT"),
    "comment": ("3.8.1.4", "BEGIN:VEVENT\nCOMMENT:{}\nEND:VEVENT"),
    "category": ("3.8.1.2", "BEGIN:VEVENT\nCATEGORIES:A,{}\nEND:VEVENT"),
    "contact": ("3.8.4.2", "BEGIN:VEVENT\nCONTACT:{}\nEND:VEVENT"),
    "name of a guest": ("3.2.2", 'BEGIN:VEVENT\nATTENDEE;CN="Ann {}; B":mailto:a@x.example\nEND:VEVENT'),
    "address of a guest": ("3.8.4.1", "BEGIN:VEVENT\nATTENDEE:mailto:{}@x.example\nEND:VEVENT"),
    "name of the host": ("3.8.4.3", "BEGIN:VEVENT\nORGANIZER;CN={}:mailto:a@x.example\nEND:VEVENT"),
    "equipment": ("3.8.1.10", "BEGIN:VEVENT\nRESOURCES:{}\nEND:VEVENT"),
    "task": ("3.6.2", "BEGIN:VTODO\nSUMMARY:{}\nEND:VTODO"),
    "journal": ("3.6.3", "BEGIN:VJOURNAL\nDESCRIPTION:{}\nEND:VJOURNAL"),
    "alarm": ("3.6.6", "BEGIN:VEVENT\nSUMMARY:One\nBEGIN:VALARM\nDESCRIPTION:{}\nEND:VALARM\nEND:VEVENT"),
    "name of a time zone": ("3.8.3.2", "BEGIN:VTIMEZONE\nTZNAME:{}\nEND:VTIMEZONE"),
    "own property": ("3.8.8.2", "BEGIN:VEVENT\nX-MILL:{}\nEND:VEVENT"),
    "new property": ("3.8.8.1", "BEGIN:VEVENT\nMILL:{}\nEND:VEVENT"),
    "page of a description": ("3.2.1", 'BEGIN:VEVENT\nDESCRIPTION;ALTREP="cid:{}":Text\nEND:VEVENT'),
    "name in a vCard": ("RFC 6350 6.2.1", "BEGIN:VCARD\nFN:Ann {}\nEND:VCARD"),
    "parts of a name": ("RFC 6350 6.2.2", "BEGIN:VCARD\nFN:Ann\nN:{};Ann;;;\nEND:VCARD"),
    "quoted-printable": (
        "vCard 2.1, 2.1.3",
        "BEGIN:VCARD\nFN:Ann\nNOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:M=C3=BChle =\nof {}\nEND:VCARD",
    ),
    "type of a telephone": ("RFC 6350 5.6", "BEGIN:VCARD\nTEL;TYPE=voice;TYPE={}:+47 1\nEND:VCARD"),
    "type in vCard 2.1": ("vCard 2.1, 2.1.3", "BEGIN:VCARD\nTEL;{};VOICE:+47 1\nEND:VCARD"),
    "time zone": ("RFC 5545 3.2.19", "BEGIN:VEVENT\nDTSTART;TZID=Europe/{}:20240613T180000\nEND:VEVENT"),
    "address": ("RFC 6350 6.3.1", "BEGIN:VCARD\nitem1.ADR;TYPE=home:;;4 {} Road;Vik;;;\nEND:VCARD"),
    "label of an address": ("RFC 6350 6.3.1", 'BEGIN:VCARD\nADR;LABEL="4 {} Road":;;a;;;;\nEND:VCARD'),
    "photograph": ("RFC 6350 6.2.4", "BEGIN:VCARD\nFN:Ann\nPHOTO;ENCODING=b:aWFh\n bbbb\nNOTE:{}\nEND:VCARD"),
    "behind the last end": ("3.4", "END:VCALENDAR\nThe {}"),
}

_BODY = text_table("", "", BODY, head=HEAD, between=("BEGIN:VEVENT\nSUMMARY:The mill\nEND:VEVENT", ""), joint="\n")


def write(given: Words) -> bytes:
    return b"BEGIN:VCALENDAR\n" + _BODY.write(given)


TABLE = FormatTable("fair.ics", "RFC 5545", _BODY.places, write)
