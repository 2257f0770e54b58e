"""Writes the neighbourhood as one self-contained HTML file, which includes BokehJS from its package.

Text of documents stays text: Bokeh escapes its data and tooltips, and the template escapes the remaining text. The file's own
content policy prevents it from loading or sending anything.
"""

from typing import TYPE_CHECKING, Any

from cli.graph.layout import (
    EDGE_COLOURS,
    NODE_COLOURS,
    PATH_COLOUR,
    Coordinates,
    ends,
    labelled_nodes,
    node_sizes,
    on_paths,
)
from cli.terminal_text import one_line, truncate
from daemon.contract.graph import GraphEdge, GraphNode, GraphResponse

if TYPE_CHECKING:
    from bokeh.models.renderers import DataRenderer
    from bokeh.plotting import figure

EDGE_STYLES = (
    ("context", "solid", 1.0),
    ("mention", "dotted", 1.2),
    ("synonym", "dashed", 1.2),
    ("relation", "solid", 1.6),
)
"""Type, dash and width of the edges. Later types are drawn above earlier ones."""
MAX_TITLE_CHARS = 300
"""Maximum number of characters of one text in a tooltip or the list."""
PAGE_TEMPLATE = """
{% block preamble %}
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
{% endblock %}
{% block postamble %}
<style>
  body { font: 16px/1.5 system-ui, sans-serif; color: #1d2329; background: #fff; }
  main { margin: 0 auto; max-width: 90rem; padding: 1rem; }
  h1 { font-size: 1.3rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; }
  figure { height: 75vh; margin: 0; } li { margin: .4rem 0; overflow-wrap: anywhere; } small { color: #4c5661; }
</style>
{% endblock %}
{% block contents %}
<main>
<h1>{{ heading | e }}</h1>
<p>{{ summary | e }}</p>
<figure role="img" aria-label="{{ summary | e }}">{{ super() }}</figure>
{% if passages %}<h2>Passages found</h2>
<ol>{% for each in passages %}
<li>{{ each.title | e }} <small>{{ each.document | e }}</small>
{%- if each.path %}<br>{{ each.path | e }}{% endif %}</li>{% endfor %}
</ol>{% endif %}
<h2>Heaviest nodes</h2>
<ol>{% for each in heaviest %}
<li>{{ each.text | e }} <small>{{ each.kind | e }}, {{ each.said | e }}</small></li>{% endfor %}
</ol>
</main>
{% endblock %}
"""


def html(neighbourhood: GraphResponse, positions: list[Coordinates]) -> str:
    # Imported only in functions, because Bokeh imports numpy and hippoctl must start fast.
    from bokeh.embed import file_html
    from bokeh.resources import INLINE

    heading = truncate(one_line(neighbourhood.query or neighbourhood.centre or ""), MAX_TITLE_CHARS)
    return file_html(
        _plot(neighbourhood, positions),
        INLINE,
        title=heading,
        template=PAGE_TEMPLATE,
        template_variables={
            "heading": heading,
            "summary": f"{len(neighbourhood.nodes)} nodes and {len(neighbourhood.edges)} of the "
            f"{neighbourhood.edges_between} edges between them, as of commit {neighbourhood.commit}",
            "passages": _passages(neighbourhood),
            "heaviest": _heaviest(neighbourhood),
        },
    )


def _plot(neighbourhood: GraphResponse, positions: list[Coordinates]) -> "figure":
    from bokeh.models import ColumnDataSource, HoverTool
    from bokeh.plotting import figure

    plot = figure(
        sizing_mode="stretch_both", tools="pan,wheel_zoom,tap,reset,save", active_scroll="wheel_zoom", match_aspect=True
    )
    plot.axis.visible = plot.grid.visible = False
    plot.toolbar.logo = None
    at = {node.id: spot for node, spot in zip(neighbourhood.nodes, positions, strict=True)}
    on = on_paths(neighbourhood)
    edges: list[DataRenderer] = []
    for kind, dash, width in EDGE_STYLES:
        of_kind = [edge for edge in neighbourhood.edges if edge.type == kind and ends(edge) not in on]
        edges.append(_lines(plot, of_kind, at, EDGE_COLOURS[kind], dash, width, kind))
    lit = [edge for edge in neighbourhood.edges if ends(edge) in on]
    edges.append(_lines(plot, lit, at, PATH_COLOUR, "solid", 4.0, "path"))
    radii = node_sizes(neighbourhood, 3.0, 20.0)
    nodes: list[DataRenderer] = []
    for kind, marker in (("phrase", "circle"), ("passage", "square")):
        numbers = [number for number, node in enumerate(neighbourhood.nodes) if node.kind == kind]
        chosen = [neighbourhood.nodes[number] for number in numbers]
        source = ColumnDataSource(
            {
                "x": [at[node.id][0] for node in chosen],
                "y": [-at[node.id][1] for node in chosen],
                "size": [2 * radii[number] for number in numbers],
                "text": [_shortened(node.text) for node in chosen],
                "said": [_tooltip_text(node) for node in chosen],
                "more": [_shortened(f"{node.document or ''} {node.excerpt or ''}") for node in chosen],
            }
        )
        style: dict[str, Any] = {"fill_color": NODE_COLOURS[kind], "line_color": "white", "legend_label": kind}
        nodes.append(plot.scatter("x", "y", size="size", marker=marker, source=source, **style))
    _names(plot, neighbourhood, at, radii)
    plot.add_tools(HoverTool(renderers=edges, tooltips=_tip("@type, weight @weight", "@triples"), line_policy="interp"))
    plot.add_tools(HoverTool(renderers=nodes, tooltips=_tip("@text", "@said", "@more")))
    plot.legend.location, plot.legend.click_policy = "top_left", "hide"
    return plot


def _tip(*lines: str) -> str:
    """Returns a tooltip with the width of a text column. Bokeh escapes the values that it inserts."""
    rows = "".join(f"<div>{line}</div>" for line in lines)
    return f'<div style="max-width: 24em; overflow-wrap: anywhere; white-space: normal">{rows}</div>'


def _lines(
    plot: "figure", edges: list[GraphEdge], at: dict[str, Coordinates], colour: str, dash: str, width: float, kind: str
) -> "DataRenderer":
    from bokeh.models import ColumnDataSource

    source = ColumnDataSource(
        {
            "xs": [[at[edge.source][0], at[edge.target][0]] for edge in edges],
            "ys": [[-at[edge.source][1], -at[edge.target][1]] for edge in edges],
            "type": [edge.type for edge in edges],
            "weight": [round(edge.weight, 3) for edge in edges],
            "triples": [
                _shortened("; ".join(f"{each.subject} · {each.predicate} · {each.object}" for each in edge.triples))
                for edge in edges
            ],
        }
    )
    style: dict[str, Any] = {"line_color": colour, "line_dash": dash, "line_width": width, "legend_label": kind}
    return plot.multi_line("xs", "ys", source=source, **style)


def _names(plot: "figure", neighbourhood: GraphResponse, at: dict[str, Coordinates], radii: list[float]) -> None:
    from bokeh.models import ColumnDataSource

    names = labelled_nodes(neighbourhood)
    positions = [at[neighbourhood.nodes[number].id] for number in names]
    source = ColumnDataSource(
        {
            "x": [x for x, _ in positions],
            "y": [-y for _, y in positions],
            "name": list(names.values()),
            "off": [radii[number] + 4 for number in names],
        }
    )
    style: dict[str, Any] = {"text_font_size": "12px", "text_color": "#1d2329"}
    plot.text("x", "y", text="name", x_offset="off", source=source, text_baseline="middle", **style)


def _passages(neighbourhood: GraphResponse) -> list[dict[str, str]]:
    nodes = {node.id: node for node in neighbourhood.nodes}
    paths = {
        path.passage: f"{' → '.join(_shortened(nodes[each].text) for each in path.nodes)} ({path.share:.0%} of its score)"
        for path in neighbourhood.paths
    }
    ranked = sorted((node for node in neighbourhood.nodes if node.rank is not None), key=lambda node: node.rank or 0)
    return [
        {"title": _shortened(node.text), "document": _shortened(node.document or ""), "path": paths.get(node.id, "")}
        for node in ranked
    ]


def _heaviest(neighbourhood: GraphResponse) -> list[dict[str, str]]:
    chosen = [neighbourhood.nodes[number] for number in labelled_nodes(neighbourhood)]
    return [{"text": _shortened(node.text), "kind": node.kind, "said": _tooltip_text(node)} for node in chosen]


def _tooltip_text(node: GraphNode) -> str:
    return f"{node.links} edges" if node.mass is None else f"PageRank {node.mass:.4f}, {node.links} edges"


def _shortened(text: str) -> str:
    return truncate(one_line(text), MAX_TITLE_CHARS)
