"""Draws the neighbourhood as a PNG, at twice the size and then scaled down, which smooths its lines."""

import io
from typing import Any

from PIL import Image, ImageDraw, ImageFont

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
from daemon.contract.graph import GraphResponse

WIDTH, HEIGHT = 1600, 1200
MARGIN = 90
SUPERSAMPLING = 2
FONTS = ("NotoSans-Regular.ttf", "DejaVuSans.ttf")
"""System fonts, which have more characters than Pillow's own font."""
TEXT_COLOUR, BACKGROUND, HALO = "#1d2329", "#ffffff", "#ffffff"


def png(neighbourhood: GraphResponse, positions: list[Coordinates]) -> bytes:
    image = Image.new("RGB", (WIDTH * SUPERSAMPLING, HEIGHT * SUPERSAMPLING), BACKGROUND)
    draw = ImageDraw.Draw(image)
    at = {node.id: _pixel(spot) for node, spot in zip(neighbourhood.nodes, positions, strict=True)}
    _edges(draw, neighbourhood, at)
    radii = node_sizes(neighbourhood, 3.0, 22.0)
    for node, radius in zip(neighbourhood.nodes, radii, strict=True):
        (x, y), r = at[node.id], radius * SUPERSAMPLING
        shape = draw.rectangle if node.kind == "passage" else draw.ellipse
        shape((x - r, y - r, x + r, y + r), fill=NODE_COLOURS[node.kind], outline=HALO, width=SUPERSAMPLING)
    names = labelled_nodes(neighbourhood)
    font = _font(15)
    for number in reversed(names):
        (x, y), r = at[neighbourhood.nodes[number].id], radii[number] * SUPERSAMPLING
        words: dict[str, Any] = {"fill": TEXT_COLOUR, "stroke_width": 2 * SUPERSAMPLING, "stroke_fill": HALO}
        # A label near the right edge is placed to the left of its node.
        side = (
            ("lm", x + r + 4 * SUPERSAMPLING)
            if x < (WIDTH - 320) * SUPERSAMPLING
            else ("rm", x - r - 4 * SUPERSAMPLING)
        )
        draw.text((side[1], y), names[number], font=font, anchor=side[0], **words)
    _legend(draw, neighbourhood)
    out = io.BytesIO()
    image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).save(out, "PNG", optimize=True)
    return out.getvalue()


def _edges(draw: ImageDraw.ImageDraw, neighbourhood: GraphResponse, at: dict[str, Coordinates]) -> None:
    """Draws context edges at the bottom, then mentions, synonyms and relations, and paths on top."""
    on = on_paths(neighbourhood)
    order = ("context", "mention", "synonym", "relation")
    for edge in sorted(neighbourhood.edges, key=lambda edge: (ends(edge) in on, order.index(edge.type))):
        lit = ends(edge) in on
        line = [at[edge.source], at[edge.target]]
        draw.line(line, fill=PATH_COLOUR if lit else EDGE_COLOURS[edge.type], width=(4 if lit else 1) * SUPERSAMPLING)


def _legend(draw: ImageDraw.ImageDraw, neighbourhood: GraphResponse) -> None:
    font, x, y = _font(17), 24 * SUPERSAMPLING, 24 * SUPERSAMPLING
    draw.text(
        (x, y),
        truncate(one_line(neighbourhood.query or neighbourhood.centre or ""), 110),
        font=_font(22),
        fill=TEXT_COLOUR,
    )
    y += 44 * SUPERSAMPLING
    for colour, label, square in (
        (NODE_COLOURS["passage"], "passage", True),
        (NODE_COLOURS["phrase"], "phrase", False),
        *((colour, kind, None) for kind, colour in EDGE_COLOURS.items()),
        (PATH_COLOUR, "path to a passage found", None),
    ):
        box = (x, y, x + 16 * SUPERSAMPLING, y + 16 * SUPERSAMPLING)
        if square is None:
            draw.line(
                (x, y + 8 * SUPERSAMPLING, x + 16 * SUPERSAMPLING, y + 8 * SUPERSAMPLING),
                fill=colour,
                width=4 * SUPERSAMPLING,
            )
        elif square:
            draw.rectangle(box, fill=colour)
        else:
            draw.ellipse(box, fill=colour)
        draw.text((x + 26 * SUPERSAMPLING, y + 8 * SUPERSAMPLING), label, font=font, fill=TEXT_COLOUR, anchor="lm")
        y += 26 * SUPERSAMPLING


def _pixel(spot: Coordinates) -> Coordinates:
    return (
        (MARGIN + spot[0] * (WIDTH - 2 * MARGIN)) * SUPERSAMPLING,
        (MARGIN + spot[1] * (HEIGHT - 2 * MARGIN)) * SUPERSAMPLING,
    )


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    for name in FONTS:
        try:
            return ImageFont.truetype(name, size * SUPERSAMPLING)
        except OSError:
            continue
    return ImageFont.load_default(size * SUPERSAMPLING)
