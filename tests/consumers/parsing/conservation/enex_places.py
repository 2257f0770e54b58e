"""Evernote's export: the places are elements of evernote-export4.dtd."""

import base64

from tests.consumers.parsing.conservation.places import FormatTable, Words

CONTENT = {
    "paragraph": ("content", "<div>The {} turns.</div>"),
    "item to do": ("content", "<div><en-todo checked='true'/>{}</div>"),
    "hint of encrypted text": ("content", "<en-crypt hint='{}'>aWFh</en-crypt>"),
    "cell of a table": ("content", "<table><tr><td>{}</td><td>1790</td></tr></table>"),
}
NOTE = {
    "tag": ("tag", "<tag>{}</tag>"),
    "author": ("author", "<note-attributes><author>{}</author></note-attributes>"),
    "address": ("source-url", "<note-attributes><source-url>http://x.example/{}</source-url></note-attributes>"),
    "place": ("place-name", "<note-attributes><place-name>{}</place-name></note-attributes>"),
    "recognised text": (
        "recognition",
        "<resource><mime>image/png</mime><recognition><![CDATA[<t>{}</t>]]></recognition></resource>",
    ),
    "name of a file": (
        "file-name",
        "<resource><data>iVBORw0KGgo=</data><resource-attributes><file-name>{}.png</file-name></resource-attributes></resource>",
    ),
}
OTHER = {"title": "title", "text of a file": "data", "second note": "note"}


def write(words: Words) -> bytes:
    content = "".join(markup.format(words[place]) for place, (_, markup) in CONTENT.items() if place in words)
    note = "".join(markup.replace("{}", words[place]) for place, (_, markup) in NOTE.items() if place in words)
    if "text of a file" in words:
        data = base64.b64encode(words["text of a file"].encode()).decode()
        note += f"<resource><data encoding='base64'>{data}</data><mime>text/markdown</mime></resource>"
    title = f"<title>The {words.get('title', 'mill')}</title>"
    second = f"<note><title>Other</title><content>{words.get('second note', 'The end')}</content></note>"
    return (
        "<?xml version='1.0' encoding='UTF-8'?><!DOCTYPE en-export SYSTEM 'http://xml.evernote.com/pub/evernote-export4.dtd'>"
        f"<en-export><note>{title}<content><![CDATA[<!DOCTYPE en-note SYSTEM 'a'><en-note>{content}</en-note>]]></content>"
        f"<created>20240501T075321Z</created>{note}</note>{second}</en-export>"
    ).encode()


TABLE = FormatTable(
    "notes.enex",
    "evernote-export4.dtd",
    {place: section for table in (CONTENT, NOTE) for place, (section, _) in table.items()} | OTHER,
    write,
)
