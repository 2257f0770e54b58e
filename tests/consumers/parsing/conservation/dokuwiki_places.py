"""DokuWiki: the places are cited by sections of its page "Formatting Syntax"."""

from tests.consumers.parsing.conservation.places import text_table

HEAD = {"title": ("Sectioning", "====== The {} ======")}
BODY = {
    "section": ("Sectioning", "===== Weir of {} =====\nIt turns."),
    "paragraph": ("Basic Text Formatting", "The **{}** stands."),
    "emphasis": ("Basic Text Formatting", "The //{}// stands."),
    "item": ("Lists", "  * {}\n  * Two."),
    "numbered item": ("Lists", "  - {}"),
    "link": ("Links", "See [[:mill:{}]]."),
    "text of a link": ("Links", "See [[weir|the {}]]."),
    "target of a link": ("Links", "See [[{}|the weir]]."),
    "web link": ("Links", "See [[https://example.org/{}|the weir]]."),
    "picture": ("Images", "{{:{}.jpg?200|}}"),
    "caption of a picture": ("Images", "{{:a.jpg|The {}}}"),
    "footnote": ("Footnotes", "It turns.((Book of {}))"),
    "cell": ("Tables", "^ Name ^ Year ^\n| {} | 1911 |"),
    "head of a column": ("Tables", "^ {} ^ Year ^\n| Ann | 1911 |"),
    "code": ("Code Blocks", "<code>The {} turns.</code>"),
    "no formatting": ("No Formatting", "<nowiki>The {}</nowiki>"),
}
TABLE = text_table("page.dokuwiki", "dokuwiki.org, Formatting Syntax", BODY, head=HEAD)
