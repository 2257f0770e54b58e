"""HTML Living Standard (WHATWG). The numbers are those of its sections."""

from tests.consumers.parsing.conservation.places import FormatTable, Words

BODY = {
    "heading": ("4.3.6", "<h1>{}</h1>"),
    "low heading": ("4.3.6", "<h5>{}</h5>"),
    "subtitle": ("4.3.7", "<hgroup><h2>The weir</h2><p>{}</p></hgroup>"),
    "address": ("4.3.10", "<address>{}</address>"),
    "paragraph": ("4.4.1", "<p>{}</p>"),
    "text of the body": ("4.3.1", "{}"),
    "text behind an element": ("4.3.1", "<p>Before.</p>{}"),
    "preformatted": ("4.4.3", "<pre>{}</pre>"),
    "quotation": ("4.4.4", "<blockquote>{}</blockquote>"),
    "numbered item": ("4.4.5", "<ol><li>{}</ol>"),
    "item": ("4.4.6", "<ul><li><p>{}</p></ul>"),
    "term": ("4.4.9", "<dl><dt>{}<dd>It turns.</dl>"),
    "definition": ("4.4.9", "<dl><dt>Wheel<dd>{}</dl>"),
    "figure": ("4.4.12", "<figure>{}</figure>"),
    "caption of a figure": ("4.4.13", "<figure><figcaption>{}</figcaption></figure>"),
    "division": ("4.4.15", "<div><div>{}</div></div>"),
    "link": ("4.5.1", '<p>See <a href="x.html">{}</a>.</p>'),
    "emphasis": ("4.5.2", "<p>He <em>{}</em> it.</p>"),
    "abbreviation": ("4.5.9", "<p>The <abbr title='{}'>WMO</abbr> met.</p>"),
    "defining title": ("4.5.8", "<p>A <dfn title='{}'>weir</dfn> holds water.</p>"),
    "abbreviation in a heading": ("4.5.9", "<h3>The <abbr title='{}'>WMO</abbr></h3><p>It met.</p>"),
    "ruby": ("4.5.12", "<p><ruby>水<rt>{}</rt></ruby></p>"),
    "data": ("4.5.13", "<p><data value='4'>{}</data></p>"),
    "time": ("4.5.14", "<p><time>{}</time></p>"),
    "code": ("4.5.15", "<p><code>{}</code></p>"),
    "deleted": ("4.7.2", "<p><del>{}</del></p>"),
    "alternative text": ("4.8.3", "<p><img src='a.png' alt='the {}'></p>"),
    "alternative text of one word": ("4.8.3", "<p><img src='a.png' alt='{}'></p>"),
    "alternative text in a heading": ("4.8.3", "<h2><img src='a.png' alt='the {}'></h2><p>It turns.</p>"),
    "frame with its own page": ("4.8.5", "<iframe srcdoc='&lt;p&gt;{}&lt;/p&gt;'></iframe>"),
    "frame in a frame": (
        "4.8.5",
        "<iframe srcdoc='&lt;iframe srcdoc=&amp;quot;{}&amp;quot;&gt;&lt;/iframe&gt;'></iframe>",
    ),
    "title of a frame": ("4.8.5", "<iframe src='https://x.example' title='{}'></iframe>"),
    "embedded": ("4.8.6", "<embed src='a.swf' title='{}'>"),
    "object": ("4.8.7", "<object data='a.swf'>{}</object>"),
    "video": ("4.8.8", "<video src='a.webm'>{}</video>"),
    "sound": ("4.8.9", "<audio src='a.opus'>{}</audio>"),
    "name of a track": ("4.8.10", "<video src='a.webm'><track src='a.vtt' label='{}'></video>"),
    "area of a map": ("4.8.13", "<map name='m'><area href='a.html' alt='the {}'></map>"),
    "formula": ("4.8.16", "<p>It is <math><mi>{}</mi></math>.</p>"),
    "drawing": ("4.8.17", "<svg><text>{}</text></svg>"),
    "title of a drawing": ("4.8.17", "<svg><title>{}</title></svg>"),
    "caption of a table": ("4.9.2", "<table><caption>{}</caption><tr><td>1<td>2<tr><td>3<td>4</table>"),
    "head of a column": ("4.9.10", "<table><tr><th>{}<th>Year<tr><td>Ann<td>1980</table>"),
    "head of a row": ("4.9.10", "<table><tr><th>{}<td>1980<tr><th>Bo<td>1981</table>"),
    "cell": ("4.9.9", "<table><tr><th>Name<th>Year<tr><td>Ann<td>{}</table>"),
    "wide cell": ("4.9.11", "<table><tr><th>Name<th>Year<tr><td colspan=2>{}<tr><td>Ann<td>1980</table>"),
    "wide cell on top": ("4.9.11", "<table><tr><td colspan=2>{}<tr><th>Name<th>Year<tr><td>Ann<td>1980</table>"),
    "high cell": ("4.9.11", "<table><tr><th>Name<th>Year<tr><td rowspan=2>{}<td>1<tr><td>2</table>"),
    "cell below a high one": ("4.9.11", "<table><tr><th>Name<th>Year<tr><td rowspan=2>Ann<td>1<tr><td>{}</table>"),
    "foot of a table": ("4.9.7", "<table><tr><td>1<td>2<tfoot><tr><td>Sum<td>{}</table>"),
    "cell of a table in a cell": (
        "4.9.1",
        "<table><tr><td><table><tr><td>{}</td></tr></table></td><td>2</td></tr></table>",
    ),
    "text between cells": ("13.2.6.1", "<table>{}<tr><th>Name<th>Year<tr><td>Ann<td>1980</table>"),
    "element between cells": ("13.2.6.1", "<table><tr><p>{}</p><th>Name<th>Year<tr><td>Ann<td>1980</table>"),
    "table that is a layout": ("4.9.1", "<table><tr><td>{}</table>"),
    "hidden cell": ("6.1", "<table><tr><th>Name<th>Year<tr><td>Ann<td hidden>{}</table>"),
    "hidden row": ("6.1", "<table><tr><th>Name<th>Year<tr hidden><td>Ann<td>{}<tr><td>Bo<td>3</table>"),
    "label": ("4.10.4", "<label>{} <input></label>"),
    "value of a field": ("4.10.5", "<input value='{}'>"),
    "hint in a field": ("4.10.5.3.10", "<input placeholder='{}'>"),
    "question on a button": ("4.10.6", "<div><button>Who mends the {} here?</button></div>"),
    "heading on a button": ("4.10.6", "<h2><button>{}</button></h2><p>Yes.</p>"),
    "button that unfolds": ("4.10.6", "<button aria-expanded=false>{}</button>"),
    "button": ("4.10.6", "<p>Now <button>{}</button></p>"),
    "option": ("4.10.7", "<select><option>{}</select>"),
    "group of options": ("4.10.9", "<select><optgroup label='{}'><option>1</optgroup></select>"),
    "suggestion": ("4.10.8", "<datalist><option value=1>{}</datalist>"),
    "text field": ("4.10.11", "<textarea>{}</textarea>"),
    "hint in a text field": ("4.10.11", "<textarea placeholder='{}'></textarea>"),
    "output": ("4.10.12", "<output>{}</output>"),
    "progress": ("4.10.13", "<progress>{}</progress>"),
    "meter": ("4.10.14", "<meter>{}</meter>"),
    "legend": ("4.10.16", "<fieldset><legend>{}</legend></fieldset>"),
    "collapsed": ("4.11.1", "<details><summary>More</summary>{}</details>"),
    "summary": ("4.11.2", "<details><summary>{}</summary>More.</details>"),
    "closed dialog": ("4.11.4", "<dialog>{}</dialog>"),
    "open dialog": ("4.11.4", "<dialog open>{}</dialog>"),
    "without scripts": ("4.12.2", "<noscript><p>{}</p></noscript>"),
    "template": ("4.12.3", "<template><p>{}</p></template>"),
    "footer of a template": ("4.12.3", "<template><footer>{}</footer></template>"),
    "title in the body": ("4.2.2", "<title>{}</title>"),
    "shadow root": ("4.12.3", "<a-b><template shadowrootmode=open><style>p {{}}</style><p>{}</p></template></a-b>"),
    "slot": ("4.12.4", "<slot>{}</slot>"),
    "canvas": ("4.12.5", "<canvas>{}</canvas>"),
    "custom element": ("4.13", "<the-gauge>{}</the-gauge>"),
    "tooltip": ("3.2.6.1", "<p title='{}'>Text.</p>"),
    "name for screen readers": ("3.2.6.6", "<p aria-label='{}'>Text.</p>"),
    "name of an icon": ("3.2.6.6", "<p>Now <button aria-label='{}'>x</button></p>"),
    "hidden": ("6.1", "<p hidden>{}</p>"),
    "hidden until found": ("6.1", "<p hidden=until-found>{}</p>"),
    "section": ("4.3.3", "<section>{}</section>"),
    "aside": ("4.3.5", "<aside>{}</aside>"),
    "navigation": ("4.3.4", "<nav><a href='/'>{}</a></nav>"),
    "contents table": ("4.3.4", "<div class=toc><a href='#a'>{}</a></div>"),
    "footer": ("4.3.9", "<footer>{}</footer>"),
    "landmark": ("WAI-ARIA 5.3.4", "<div role=search>{}</div>"),
    "soft hyphens": ("13.5", "<p>The shipyard.</p><p>{}</p>"),
}
HEAD = {
    "title": ("4.2.2", "<title>{}</title>"),
    "site in the title": ("4.2.2", "<title>The weir - {}</title>"),
    "description": ("4.2.5.1", "<meta name=description content='{}'>"),
    "author": ("4.2.5.1", "<meta name=author content='{}'>"),
    "keywords": ("4.2.5.1", "<meta name=keywords content='{}'>"),
}
AROUND = {
    "before the main part": ("4.4.14", "<header>{}</header>"),
    "behind the main part": ("4.4.14", "<div>{}</div>"),
}


def write(words: Words) -> bytes:
    """A page with an element for each word. A soft hyphen stands in the word of that place."""
    words = {place: f"{word[:3]}&shy;{word[3:]}" if place == "soft hyphens" else word for place, word in words.items()}

    def parts(table: dict[str, tuple[str, str]]) -> str:
        return "\n".join(part.format(words[place]) for place, (_, part) in table.items() if place in words)

    body = f"<h1>The weir</h1><p>The mill stands at the weir.</p>\n{parts(BODY)}"
    if any(place in words for place in AROUND):
        before, behind = (part.format(words[place]) if place in words else "" for place, (_, part) in AROUND.items())
        body = f"{before}<main>{body}</main>{behind}"
    return f"<!DOCTYPE html><html><head><meta charset=utf-8>{parts(HEAD)}</head><body>{body}</body></html>".encode()


TABLE = FormatTable(
    "page.html",
    "HTML Living Standard",
    {place: section for table in (HEAD, BODY, AROUND) for place, (section, _) in table.items()},
    write,
)
