"""Outlook's messages: properties of [MS-OXPROPS], cited by name and section."""

import struct

from tests.consumers.parsing.conservation.places import FormatTable, Words
from tests.consumers.parsing.office_samples import Storage, outlook

PROPERTIES = {
    "subject": ("PidTagSubject, 2.1027", "0037001F", "{}"),
    "sender": ("PidTagSenderName, 2.1004", "0C1A001F", "{}"),
    "sender's address": ("PidTagSenderSmtpAddress, 2.1006", "5D01001F", "{}@example.org"),
    "recipients": ("PidTagDisplayTo, 2.677", "0E04001F", "{}"),
    "copy": ("PidTagDisplayCc, 2.674", "0E03001F", "{}"),
    "blind copy": ("PidTagDisplayBcc, 2.673", "0E02001F", "{}"),
    "address in the headers": (
        "PidTagTransportMessageHeaders, 2.1039",
        "007D001F",
        "From: Ann <{}@example.org>\r\n\r\n",
    ),
    "body": ("PidTagBody, 2.618", "1000001F", "The {} turns."),
    "page": ("PidTagHtml, 2.735", "1013001F", "<p>The wheel {} turns.</p>"),
}
RECIPIENT = {
    "name of a recipient": ("PidTagDisplayName, 2.676", "3001001F", "{}"),
    "address of a recipient": ("PidTagSmtpAddress, 2.1020", "39FE001F", "{}@example.org"),
}
ATTACHED = {
    "attachment": ("PidTagAttachLongFilename, 2.595", "__attach_version1.0_#00000000", "3707001F", "{}.dwg"),
    "attachment with a short name": (
        "PidTagAttachFilename, 2.588",
        "__attach_version1.0_#00000001",
        "3704001F",
        "{}.dwg",
    ),
}
MESSAGE = {
    "subject of an attached message": ("PidTagSubject, 2.1027", "0037001F", "The {}"),
    "body of an attached message": ("PidTagBody, 2.618", "1000001F", "The {} turns."),
}
FILES = {
    "attached text": ("PidTagAttachDataBinary, 2.580", "a.txt"),
    "attached page": ("PidTagAttachDataBinary, 2.580", "a.html"),
}


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


def write(words: Words) -> bytes:
    streams = {"__properties_version1.0": bytes(32)}
    for place, (_, name, value) in PROPERTIES.items():
        if place in words:
            streams[f"__substg1.0_{name}"] = utf16(value.format(words[place]))
    storages: dict[str, Storage] = {
        storage: {f"__substg1.0_{name}": utf16(value.format(words[place]))}
        for place, (_, storage, name, value) in ATTACHED.items()
        if place in words
    }
    recipient = {
        f"__substg1.0_{name}": utf16(value.format(words[place]))
        for place, (_, name, value) in RECIPIENT.items()
        if place in words
    }
    if recipient:
        kind = bytes(8) + struct.pack("<HHIQ", 3, 0x0C15, 6, 2)
        storages["__recip_version1.0_#00000000"] = {"__properties_version1.0": kind, **recipient}
    for number, (place, (_, name)) in enumerate(FILES.items(), 2):
        if place in words:
            content = {
                "__substg1.0_3707001F": utf16(name),
                "__substg1.0_37010102": f"<p>{words[place]}</p>".ljust(4096).encode(),
            }
            storages[f"__attach_version1.0_#{number:08}"] = content
    inner: dict[str, bytes] = {
        f"__substg1.0_{name}": utf16(value.format(words[place]))
        for place, (_, name, value) in MESSAGE.items()
        if place in words
    }
    if inner:
        message = {"__properties_version1.0": bytes(24), **inner}
        storages["__attach_version1.0_#00000009"] = {"__substg1.0_3701000D": message}
    return outlook(streams, storages)


TABLE = FormatTable(
    "letter.msg",
    "[MS-OXMSG] and [MS-OXPROPS]",
    {
        place: section
        for table in (PROPERTIES, RECIPIENT, ATTACHED, MESSAGE, FILES)
        for place, (section, *_) in table.items()
    },
    write,
)
