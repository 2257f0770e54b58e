"""Writes a trace as one self-contained page: the graph after each step, and all queries and results.

A step's graph has the memory points and their entities, or the queries and the passages that they found. BokehJS, which draws
it, is included from its package. Text of documents, users and models is escaped, and the page's content policy prevents it from
loading anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from cli.client.typed_answers import incompatible_answer, parse_answer
from cli.errors import CommandError
from cli.files import read_json
from cli.graph.layout import Coordinates, force_directed, load_igraph
from cli.render.steps import STOP_REASON_TEXTS
from cli.terminal_text import count, milliseconds, truncate
from daemon.contract.answering.ask import AskResponse
from daemon.contract.answering.steps import DeepStep, Inquiry, IterativeStep, MemoryPoint, PointChange, PointMemory
from daemon.contract.choices import Answerer

if TYPE_CHECKING:
    from bokeh.plotting import figure


POINT, ENTITY, ABSENT, QUERY, PASSAGE = "point", "entity", "absent", "query", "passage"
CONTENT_SECURITY_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
NODE_STYLES = {
    POINT: ("square", 26, "#2f6f9f"),
    ENTITY: ("circle", 12, "#d9a441"),
    ABSENT: ("circle", 12, "#ffffff"),
    QUERY: ("square", 24, "#7a4f9a"),
    PASSAGE: ("circle", 13, "#4f8f5f"),
}
"""Marker, size in pixels, and colour of each kind of node."""
LABEL = 28
"""Maximum number of characters of a label."""
_STYLE = """
:root { color-scheme: light }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
body { color: #1d2329; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem } h3 { font-size: 1rem; margin-bottom: .2rem }
.meta, .small { color: #58636e; font-size: .87rem } .answer { font-size: 1.05rem; white-space: pre-wrap }
.note { border-left: 3px solid #d9a441; padding-left: .7rem } ul { margin: .2rem 0 .6rem; padding-left: 1.2rem }
.kind { display: inline-block; min-width: 4.5rem; color: #58636e } blockquote { margin: .3rem 0; color: #333b43 }
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a graph. `kind` is one of the constants above, `name` is unique within it, and `text` is the tooltip."""

    kind: str
    name: str
    label: str
    text: str
    fresh: bool = False
    """Whether this step created or changed the node."""

    @property
    def key(self) -> tuple[str, str]:
        return (ENTITY if self.kind == ABSENT else self.kind, self.name)


@dataclass(frozen=True, slots=True)
class StepGraph:
    """The content of the memory after one step. Edges are pairs of indices into `nodes`."""

    title: str
    nodes: tuple[Node, ...] = ()
    edges: tuple[tuple[int, int], ...] = ()


def working_memory_graphs(earlier: PointMemory, steps: Sequence[DeepStep]) -> list[StepGraph]:
    """Returns the graph of the memory before the first step, if it was not empty, and after each step."""
    graphs = [_memory("Before", earlier.points, ())] if earlier.points else []
    for step in steps:
        changed = {change.point.id for change in step.changes}
        graphs.append(_memory(f"Step {step.number}", step.after.points, changed))
    return graphs


def _memory(title: str, points: Sequence[MemoryPoint], fresh: Iterable[str]) -> StepGraph:
    changed = set(fresh)
    nodes = [Node(POINT, point.id, point.id, point.description, point.id in changed) for point in points]
    absent = {name for point in points for name in point.absent}
    row_of: dict[str, int] = {}
    edges = []
    for at, point in enumerate(points):
        for entity in point.entities:
            if entity not in row_of:
                row_of[entity] = len(nodes)
                kind = ABSENT if entity in absent else ENTITY
                tooltip = "named by the model, not in the graph" if kind == ABSENT else "phrase of the graph"
                nodes.append(Node(kind, entity, entity, tooltip))
            edges.append((at, row_of[entity]))
    return StepGraph(title, tuple(nodes), tuple(edges))


def retrieval_graphs(steps: Sequence[IterativeStep]) -> list[StepGraph]:
    """Returns a graph for each step, with all queries and passages up to this step."""
    graphs = []
    for end in range(1, len(steps) + 1):
        nodes = [
            Node(QUERY, str(step.number), f"query {step.number}", step.query, step.number == end)
            for step in steps[:end]
        ]
        row_of: dict[str, int] = {}
        edges = []
        for at, step in enumerate(steps[:end]):
            for passage in step.found:
                if passage.id not in row_of:
                    row_of[passage.id] = len(nodes)
                    label = passage.title or passage.text[:40]
                    nodes.append(Node(PASSAGE, passage.id, label, passage.text[:300], passage.id in steps[end - 1].new))
                edges.append((at, row_of[passage.id]))
        graphs.append(StepGraph(f"Step {end}", tuple(nodes), tuple(edges)))
    return graphs


def common_layout(graphs: Sequence[StepGraph]) -> dict[tuple[str, str], Coordinates]:
    """Returns each node's position in every graph: one force-directed, deterministic layout of all graphs together."""
    keys = sorted({node.key for graph in graphs for node in graph.nodes})
    rows = {key: row for row, key in enumerate(keys)}
    edges = {(rows[graph.nodes[a].key], rows[graph.nodes[b].key]) for graph in graphs for a, b in graph.edges}
    return dict(zip(keys, force_directed(load_igraph().Graph(len(keys), sorted(edges)), 7, 1000), strict=True))


def read_trace(path: Path) -> AskResponse:
    """Returns the answer that `ask --trace` wrote. Raises CommandError if the file is not a trace, or has no steps."""
    value = read_json(path)
    if not isinstance(value, dict) or "steps" not in value or "question" not in value:
        raise CommandError(
            f"{path} is not a trace: it contains no question with steps.", hint="`ask --deep --trace FILE` writes one."
        )
    answer = parse_answer(AskResponse, value)
    if not answer.steps:
        raise CommandError(
            f"{path} has no steps to draw: the question was answered at once.", hint="Ask with --deep or --steps N."
        )
    return answer


def trace_page(answer: AskResponse) -> str:
    deep = answer.answerer is Answerer.DEEP
    try:
        if deep:
            steps = [DeepStep.model_validate(step) for step in answer.steps]
            earlier = PointMemory.model_validate(answer.earlier or {})
            graphs = working_memory_graphs(earlier, steps)
            steps_html = "".join(_deep(step) for step in steps) + _points(steps[-1].after, _titles(steps, answer))
        else:
            rounds = [IterativeStep.model_validate(step) for step in answer.steps]
            graphs = retrieval_graphs(rounds)
            steps_html = "".join(_iterative(step) for step in rounds)
    except ValidationError as error:
        raise incompatible_answer(error) from None
    library, script, place = _drawing(graphs)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_SECURITY_POLICY}">'
        f"<title>{escape(answer.question)}</title><style>{_STYLE}</style>\n{library}</head><body>\n"
        f"{_head(answer)}<h2>{'Memory' if deep else 'Passages'} step by step</h2>{place}"
        f"{_legend(deep)}<h2>Steps</h2>{steps_html}{_sources(answer)}\n{script}</body></html>\n"
    )


def _head(answer: AskResponse) -> str:
    facts = [
        str(answer.answerer),
        count(len(answer.steps), "step"),
        count(answer.calls, "call"),
        f"{answer.tokens.prompt:,} + {answer.tokens.completion:,} tokens",
        milliseconds(answer.took_ms),
        f"commit {answer.commit}",
    ]
    if answer.entities_a_point is not None:
        facts.append(f"{answer.entities_a_point:.2f} entities a point")
    if answer.stopped:
        facts.append(STOP_REASON_TEXTS.get(answer.stopped, answer.stopped))
    note = f'<p class="note">{escape(answer.note)}</p>' if answer.note else ""
    return (
        f'<h1>{escape(answer.question)}</h1><p class="answer">{escape(answer.answer)}</p>{note}'
        f'<p class="meta">{escape(" · ".join(facts))}</p>'
    )


def _legend(deep: bool) -> str:
    explanation = (
        "Squares are points, discs their entities (hollow: named by the model, not in the graph)."
        if deep
        else "Squares are queries, discs the passages that they found."
    )
    more = "What a step made or changed has a thick rim. Drag to move, scroll to zoom, point to read."
    return f'<p class="small">{explanation} {more}</p>'


def _items(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else ""


def _deep(step: DeepStep) -> str:
    found = "".join(_inquiry(inquiry) for inquiry in step.inquiries)
    enough = "<p>The memory suffices.</p>" if step.enough else ""
    changes = _items([_change(change) for change in step.changes])
    refused = _items([f"refused ({escape(each.why)}): {escape(each.what)}" for each in step.refused])
    return f"<h3>Step {step.number}</h3>{enough}{found}{changes}{refused}"


def _inquiry(inquiry: Inquiry) -> str:
    concern = inquiry.concern
    where = f"local, about {concern.point}" if concern.point else "global"
    entities = ", ".join(f"{each.phrase} ({each.score:.2f})" for each in inquiry.entities)
    parts = [
        f"{len(inquiry.entities):,} of {count(inquiry.candidates, 'candidate phrase')}: {escape(entities)}",
        *(escape(f"{each.subject} · {each.predicate} · {each.object}") for each in inquiry.triples),
        *(f"<i>{escape(each.title or each.id)}</i> {escape(each.text[:400])}" for each in inquiry.passages),
    ]
    return (
        f'<p><span class="kind">{escape(where)}</span> {escape(concern.text)}<br>'
        f"→ <i>{escape(concern.subquery)}</i></p><details><summary>found</summary>{_items(parts)}</details>"
    )


def _change(change: PointChange) -> str:
    merged = f" of {', '.join(point.id for point in change.before)}" if change.kind == "merged" else ""
    kind = escape(f"{change.kind}{merged}")
    return f'<span class="kind">{kind}</span> <b>{escape(change.point.id)}</b> {escape(change.point.description)}'


def _titles(steps: Sequence[DeepStep], answer: AskResponse) -> Mapping[str, str]:
    """Returns the titles of passages by id, as far as the trace contains them."""
    found = {each.id: each.title for step in steps for inquiry in step.inquiries for each in inquiry.passages}
    return found | {each.id: each.title or each.document for each in answer.citations}


def _points(memory: PointMemory, titles: Mapping[str, str]) -> str:
    def point_html(point: MemoryPoint) -> str:
        absent = set(point.absent)
        names = ", ".join(f"{each} (not in the graph)" if each in absent else each for each in point.entities)
        titles_of_passages = ", ".join(titles.get(id) or id for id in point.passages)
        return (
            f"<b>{escape(point.id)}</b> {escape(point.description)}"
            f'<br><span class="small">{escape(names)} — {escape(titles_of_passages)}</span>'
        )

    return f"<h2>Points at the end</h2>{_items([point_html(point) for point in memory.points]) or '<p>None.</p>'}"


def _iterative(step: IterativeStep) -> str:
    new = set(step.new)
    passages = [
        f"{'<b>new</b> ' if each.id in new else ''}<i>{escape(each.title or each.id)}</i> {escape(each.text[:400])}"
        for each in step.found
    ]
    thought = f"<blockquote>{escape(step.thought.text)}</blockquote>" if step.thought else ""
    failed = f'<p class="note">{escape(step.error)}</p>' if step.error else ""
    return f"<h3>Step {step.number}: {escape(step.query)}</h3>{_items(passages)}{thought}{failed}"


def _sources(answer: AskResponse) -> str:
    cited = [
        f'[{each.rank}] <b>{escape(each.title or "(no title)")}</b> <span class="small">{escape(each.document)}</span>'
        f"<br>{escape(each.text)}"
        for each in answer.citations
    ]
    return f"<h2>Sources</h2>{_items(cited)}" if cited else ""


def _drawing(graphs: Sequence[StepGraph]) -> tuple[str, str, str]:
    """Returns (BokehJS, the drawing script, the element that it draws into)."""
    from bokeh.embed import components
    from bokeh.models import TabPanel, Tabs
    from bokeh.resources import Resources

    where = common_layout(graphs)
    panels = [TabPanel(child=_figure(each, where), title=each.title) for each in graphs]
    tabs = Tabs(tabs=panels, active=len(panels) - 1, sizing_mode="stretch_width")
    script, place = components(tabs)
    return Resources(mode="inline", components=["bokeh"]).render_js(), str(script), str(place)


def _figure(graph: StepGraph, positions: Mapping[tuple[str, str], Coordinates]) -> "figure":
    from bokeh.models import ColumnDataSource, HoverTool, Range1d
    from bokeh.plotting import figure

    at = [positions[node.key] for node in graph.nodes]
    xs, ys = [x for x, _ in positions.values()] or [0.0], [y for _, y in positions.values()] or [0.0]
    margin = 0.15 * max(max(xs) - min(xs), max(ys) - min(ys), 1.0)
    plot = figure(
        height=520,
        sizing_mode="stretch_width",
        x_range=Range1d(start=min(xs) - margin, end=max(xs) + margin),
        y_range=Range1d(start=min(ys) - margin, end=max(ys) + margin),
        tools="pan,wheel_zoom,reset",
        active_scroll="wheel_zoom",
        toolbar_location="above",
    )
    plot.toolbar.logo = None
    plot.axis.visible = plot.grid.visible = False
    ends = [[[at[start][axis], at[end][axis]] for start, end in graph.edges] for axis in (0, 1)]
    plot.multi_line(*ends, line_color="#9aa5af", line_width=1.2)
    styles = [NODE_STYLES[node.kind] for node in graph.nodes]
    source = ColumnDataSource(
        {
            "x": [x for x, _ in at],
            "y": [y for _, y in at],
            "marker": [marker for marker, _, _ in styles],
            "size": [size for _, size, _ in styles],
            "fill": [colour for _, _, colour in styles],
            "rim": [3.0 if node.fresh else 1.0 for node in graph.nodes],
            "name": [node.label for node in graph.nodes],
            "label": [truncate(node.label, LABEL) for node in graph.nodes],
            "offset": [size / 2 + 3 for _, size, _ in styles],
            "tooltip": [node.text for node in graph.nodes],
        }
    )
    nodes = plot.scatter(
        "x", "y", source=source, marker="marker", size="size", fill_color="fill", line_color="#1d2329", line_width="rim"
    )
    plot.text("x", "y", text="label", source=source, x_offset="offset", y_offset=4, text_font_size="11px")
    plot.add_tools(HoverTool(renderers=[nodes], tooltips=[("", "@name"), ("", "@tooltip")]))
    return plot
