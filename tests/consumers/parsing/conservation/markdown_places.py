"""Markdown: the places are cited by sections of CommonMark 0.31, GFM and the help pages of Obsidian."""

from tests.consumers.parsing.conservation.places import FormatTable, Words, text_table

HEAD = {
    "title": ("YAML front matter", "title: The {}"),
    "description": ("YAML front matter", "description: >\n  The {}"),
    "alias": ("YAML front matter", "aliases: [{}, a]"),
    "own key": ("YAML front matter", "mill: the {}"),
    "nested value": ("YAML front matter", "weir:\n  gate:\n    - the {}"),
    "comment of YAML": ("YAML 6.6", "# {}"),
    "comment behind a value": ("YAML 6.6", "wheel: oak # {}"),
    "name of a key": ("YAML front matter", "{}: here"),
}
BODY = {
    "heading": ("4.2", "# {}"),
    "closed heading": ("4.2", "### {} ###\n\nIt turns."),
    "underlined heading": ("4.3", "The {}\n---\n\nIt turns."),
    "indented code": ("4.4", "    {} = 1"),
    "code": ("4.5", "```\n{}\n```"),
    "words behind the language of code": ("4.5", "```python title='{}'\na = 1\n```"),
    "code that does not end": ("4.5", "> ~~~\n> {}"),
    "element": ("4.6", "<div>\n{}\n</div>"),
    "text behind an element": ("4.6", "<div>mill</div> {}"),
    "attribute of an element": ("4.6", "<div title='the {}'>\nText.\n</div>"),
    "alternative text of an element": ("4.6", "<p><img src='a.png' alt='the {}'></p>"),
    "comment": ("4.6", "<!-- {} -->"),
    "comment of many lines": ("4.6", "<!--\n{}\n\n<b>mill</b>\n-->"),
    "comment in a line": ("6.6", "The mill <!-- {} --> stands."),
    "script": ("4.6", "<script>\nlet {} = 1\n</script>"),
    "style": ("4.6", "<style>\n/* {} */\n</style>"),
    "processing instruction": ("4.6", "<?php {} ?>"),
    "declaration": ("4.6", "<!DOCTYPE {}>"),
    "character data": ("4.6", "<![CDATA[ {} ]]>"),
    "collapsed": ("4.6", "<details><summary>More</summary>\n\n{}\n\n</details>"),
    "title of a definition": ("4.7", "See [mill].\n\n[mill]: /a '{}'"),
    "definition that nothing uses": ("4.7", "[{}]: /a"),
    "title of an unused definition": ("4.7", "[weir]: /a '{}'"),
    "comment as a definition": ("4.7", "[//]: # (the {})"),
    "paragraph": ("4.8", "The {} stands."),
    "quotation": ("5.1", "> The {} stands."),
    "item": ("5.2", "- {}\n- Two."),
    "second paragraph of an item": ("5.2", "- One.\n\n  It is {}.\n- Two."),
    "numbered item": ("5.3", "3. {}"),
    "task": ("GFM 5.3", "- [x] {}"),
    "entity": ("2.5", "&auml; {}"),
    "code in a line": ("6.1", "The `{}` stands."),
    "emphasis": ("6.2", "The **{}** stands."),
    "struck out": ("GFM 6.5", "The ~~{}~~ stands."),
    "link": ("6.3", "See [{}](/a)."),
    "title of a link": ("6.3", "See [mill](/a 'the {}')."),
    "reference link": ("6.3", "See [{}][mill].\n\n[mill]: /a"),
    "link to nothing": ("6.3", "See [{}][nowhere]."),
    "alternative text": ("6.4", "![the {}](a.png)"),
    "title of a picture": ("6.4", "![mill](a.png 'the {}')"),
    "address": ("6.5", "<https://{}.example>"),
    "attribute in a line": ("6.6", "The <abbr title='the {}'>WMO</abbr> met."),
    "element in a line": ("6.6", "The <kbd>{}</kbd> key."),
    "head of a column": ("GFM 4.10", "| {} | Year |\n|---|---|\n| Ann | 1911 |"),
    "head of an empty column": ("GFM 4.10", "| Name | {} |\n|---|---|\n| Ann | |"),
    "head of a table without rows": ("GFM 4.10", "| Name | {} |\n|---|---|"),
    "cell": ("GFM 4.10", "| Name | Year |\n|---|---|\n| {} | 1911 |"),
    "cell beyond the columns": ("GFM 4.10", "| Name | Year |\n|---|---|\n| Ann | 1911 | {} |"),
    "footnote": ("GFM footnotes", "A wheel[^1].\n\n[^1]: It is {}."),
    "footnote of one word": ("GFM footnotes", "A wheel[^2].\n\n[^2]: {}"),
    "footnote that nothing uses": ("GFM footnotes", "[^9]: It is {}."),
    "footnote in the line": ("Obsidian: footnotes", "A wheel.^[It is {}.]"),
    "formula": ("Obsidian: math", "$$\n{} + 1\n$$"),
    "wikilink": ("Obsidian: links", "See [[{}]]."),
    "text of a wikilink": ("Obsidian: links", "See [[Mill|the {}]]."),
    "page of a wikilink with a text": ("Obsidian: links", "See [[{}|the mill]]."),
    "heading of a wikilink": ("Obsidian: links", "See [[Mill#{}]]."),
    "embedded page": ("Obsidian: embeds", "![[{}]]"),
    "description of an embedded picture": ("Obsidian: embeds", "![[a.png|the {}|300]]"),
    "callout": ("Obsidian: callouts", "> [!tip] {}\n> Text."),
    "folded callout": ("Obsidian: callouts", "> [!tip]- Mill\n> {}"),
    "comment of Obsidian": ("Obsidian: comments", "The mill %%{}%% stands."),
    "block of comments": ("Obsidian: comments", "%%\n{}\n%%"),
    "highlight": ("Obsidian: highlights", "The =={}== stands."),
    "tag": ("Obsidian: tags", "It is #{}."),
    "property": ("Dataview", "mill:: {}"),
    "property in a line": ("Dataview", "It is [mill:: {}]."),
    "name of a property": ("Dataview", "{}:: here"),
    "query": ("Dataview", "```dataview\nLIST FROM #{}\n```"),
    "definition of a term": ("Pandoc", "Wheel\n: It is {}."),
    "attribute of a heading": ("Pandoc", "## Weir {#{}}\n\nIt turns."),
    "container": ("Docusaurus", ":::note[{}]\nText.\n:::"),
    "property of a page": ("Logseq", "- mill\n  gate:: {}"),
    "macro": ("Logseq", "{{embed [[{}]]}}"),
}
TAIL = {"last line": ("4.8", "It is {}")}

_PAGE = text_table("", "", BODY, tail=TAIL, between=("The mill stands.", ""))
_PROPERTIES = text_table("", "", HEAD, joint="\n")


def write(given: Words) -> bytes:
    front = b"---\n%s\n---\n\n" % _PROPERTIES.write(given) if given.keys() & HEAD.keys() else b""
    return front + _PAGE.write(given)


TABLE = FormatTable("notes.md", "CommonMark 0.31", {**_PROPERTIES.places, **_PAGE.places}, write)
