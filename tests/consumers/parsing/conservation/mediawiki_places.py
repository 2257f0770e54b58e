"""MediaWiki: the places are cited by pages of mediawiki.org's "Help"."""

from tests.consumers.parsing.conservation.places import text_table

BODY = {
    "heading": ("Formatting", "== Weir of {} ==\nIt turns."),
    "paragraph": ("Formatting", "The ''{}'' stands."),
    "bold": ("Formatting", "The '''{}''' stands."),
    "item": ("Lists", "* {}\n* Two."),
    "numbered item": ("Lists", "# {}"),
    "term": ("Lists", "; {}\n: It turns."),
    "link": ("Links", "See [[{}]]."),
    "text of a link": ("Links", "See [[Weir|the {}]]."),
    "target of a link": ("Links", "See [[{}|the weir]]."),
    "web link": ("Links", "See [https://example.org/{} the weir]."),
    "text of a web link": ("Links", "See [https://example.org/a the {}]."),
    "category": ("Categories", "[[Category:{}]]"),
    "caption of a picture": ("Images", "[[File:a.png|thumb|The {}]]"),
    "name of a picture": ("Images", "[[File:{}.png|thumb]]"),
    "name of a template": ("Templates", "{{{}|a}}"),
    "parameter of a template": ("Templates", "{{Infobox\n| mill = {}\n}}"),
    "name of a parameter": ("Templates", "{{Infobox\n| {} = 4\n}}"),
    "template in a template": ("Templates", "{{Infobox|a={{b|{}}}}}"),
    "footnote": ("Cite", 'It turns.<ref name="a">Book of {}</ref>'),
    "cell": ("Tables", '{| class="wikitable"\n! Name !! Year\n|-\n| {} || 1911\n|}'),
    "head of a column": ("Tables", "{|\n! {} !! Year\n|-\n| Ann || 1911\n|}"),
    "cell on a line of its own": ("Tables", "{|\n|-\n| Ann\n| {}\n|}"),
    "second line of a cell": ("Tables", "{|\n|-\n| Ann\nof {}\n|}"),
    "caption of a table": ("Tables", "{|\n|+ {}\n|-\n| Ann\n|}"),
    "attribute of a table": ("Tables", '{| summary="{}"\n|-\n| Ann\n|}'),
    "link in a cell": ("Tables", "{|\n|-\n| [[{}|Ann]]\n|}"),
    "text between tags": ("Formatting", "<small>The {}</small>"),
    "comment": ("Editing", "<!-- {} -->"),
}
TABLE = text_table("page.mediawiki", "mediawiki.org, Help", BODY)
