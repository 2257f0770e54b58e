"""XML: the places are cited by sections of XML 1.0 (fifth edition)."""

from tests.consumers.parsing.conservation.places import FormatTable, Words

HEAD = {
    "comment above": ("2.8", "<!-- {} -->"),
    "entity": ("4.2.1", '<!DOCTYPE mill [<!ENTITY weir "the {} weir"> <!ENTITY other "wheel">]>'),
}
BODY = {
    "index entry between paragraphs": ("DocBook indexterm", "<indexterm><primary>{}</primary></indexterm>"),
    "entity of another file": ("4.4.3", "<para>See &{};</para>"),
    "title": ("3.1", "<title>{}</title>"),
    "text of an element": ("2.4", "<para>{}</para>"),
    "text deep inside": ("3.1", "<a><b><c>{}</c></b></a>"),
    "mixed": ("3.2.2", "<para>The <emph>{}</emph> stands.</para>"),
    "behind an element": ("3.2.2", "<para><emph>The mill</emph> {}</para>"),
    "behind an element of the root": ("3.2.2", "<a/>{}"),
    "character data": ("2.7", "<para><![CDATA[{} < 1]]></para>"),
    "character reference": ("4.1", "<para>&#x41; {}</para>"),
    "value of a record": ("3.1", "<ship><name>{}</name><year>1911</year></ship>"),
    "long value of a record": ("3.1", "<ship><name>Ann</name><text>" + "It turns. " * 60 + "{}</text></ship>"),
    "empty element's attribute": ("3.1", "<ship name='{}' year='1911'/>"),
    "attribute": ("3.1", "<ship name='the {}'>It sails.</ship>"),
    "attribute of one word": ("3.1", "<ship kind='{}'>It sails.</ship>"),
    "attribute in a text": ("3.1", "<para>The <image alt='a {}'/> stands.</para>"),
    "attribute of a record": ("3.1", "<ship kind='{}'><name>Ann</name><year>1911</year></ship>"),
    "attribute of a value": ("3.1", "<ship><name lang='{}'>Ann</name><year>1911</year></ship>"),
    "attribute of a title": ("3.1", "<section><title abbrev='{}'>Weir</title><p>It turns.</p></section>"),
    "comment": ("2.5", "<para>Text.</para><!-- {} -->"),
    "comment in a text": ("2.5", "<para>The <!-- {} --> mill</para>"),
    "comment in a record": ("2.5", "<ship><name>Ann</name><!-- {} --><year>1911</year></ship>"),
    "behind a comment": ("2.5", "<para><!-- mill -->{}</para>"),
    "program listing": ("2.10", "<programlisting>{}</programlisting>"),
    "entry of an index": ("DocBook indexterm", "<para>Text<indexterm><primary>{}</primary></indexterm>.</para>"),
    "text behind an index entry": (
        "DocBook indexterm",
        "<para>Text<indexterm><primary>a</primary></indexterm>{}</para>",
    ),
    "description of binary data": ("FictionBook binary", "<binary id='{}.png'>aWFh</binary>"),
    "page as character data": (
        "2.7",
        "<content><![CDATA[<?xml version='1.0'?><en-note><p>{}</p></en-note>]]></content>",
    ),
    "page in a record": ("2.7", "<note><name>Ann</name><text>&lt;p&gt;{}&lt;/p&gt;</text></note>"),
    "page in a text": ("XHTML", "<text>&lt;p&gt;{}&lt;/p&gt;</text>"),
    "other namespace": ("Namespaces 5", "<x:note xmlns:x='urn:x'>{}</x:note>"),
    "style of a text": ("FictionBook style", "<p>It is <style name='own'>{}</style>.</p>"),
}


def write(given: Words) -> bytes:
    def parts(table: dict[str, tuple[str, str]]) -> str:
        return "\n".join(markup.replace("{}", given[place]) for place, (_, markup) in table.items() if place in given)

    head = parts(HEAD)
    outside = "entity that another file declares"
    if outside in given:
        head = (
            head.replace("<!DOCTYPE mill", "<!DOCTYPE mill SYSTEM 'mill.dtd'")
            if "entity" in given
            else (head + "<!DOCTYPE mill SYSTEM 'mill.dtd'>")
        )
    used = f"<para>At &{given[outside]};</para>" if outside in given else ""
    use = "<para>At &weir; and &amp;.</para>" if "entity" in given else ""
    start = f"<?xml version='1.0'?>\n{head}\n<mill><para>It stands.</para><para>It turns.</para>"
    return f"{start}{use}{used}{parts(BODY)}</mill>".encode()


OTHERS = {"entity that another file declares": "4.4.3"}

TABLE = FormatTable(
    "mill.xml",
    "XML 1.0",
    {place: section for table in (HEAD, BODY) for place, (section, _) in table.items()} | OTHERS,
    write,
)
