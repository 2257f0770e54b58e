"""Draws the samples of a soak as one SVG: five panels over time, with the phases and the starts of the daemon."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from bench.support.measuring import MIB
from bench.support.soak.samples import Sample

WIDTH, PANEL, GAP, LEFT, RIGHT, TOP = 760, 96, 26, 56, 150, 34
POINTS = 160
"""Maximum number of points of a line, which limits the size of the file. A point is the mean of an interval."""
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37")


@dataclass(frozen=True)
class Line:
    name: str
    value: Callable[[Sample], float | None]


PANELS: Sequence[tuple[str, Sequence[Line]]] = (
    (
        "latency, ms",
        (
            Line("query, median", lambda each: each.query_p50),
            Line("query, 95 %", lambda each: each.query_p95),
            Line("as of, median", lambda each: each.as_of_p50),
        ),
    ),
    (
        "memory, MiB",
        (
            Line("resident", lambda each: each.resident / MIB),
            Line("of it anonymous", lambda each: each.anonymous / MIB),
        ),
    ),
    ("descriptors, threads", (Line("descriptors", lambda e: e.descriptors), Line("threads", lambda e: e.threads))),
    ("disk, MiB", (Line("store", lambda each: each.disk / MIB),)),
    ("documents", (Line("documents", lambda each: each.documents),)),
)


def svg(samples: Sequence[Sample], title: str) -> str:
    """Returns the drawing. `samples` must not be empty."""
    end = samples[-1].at or 1.0
    height = TOP + len(PANELS) * (PANEL + GAP) + 14
    plot = WIDTH - LEFT - RIGHT

    def x(at: float) -> float:
        return LEFT + plot * at / end

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/><text x="{LEFT}" y="14">{escape(title)}</text>',
    ]
    for number, (name, begin, until) in enumerate(_phases(samples)):
        shade = "#f2f5f9" if number % 2 else "#fff"
        out.append(
            f'<rect x="{x(begin):.0f}" y="{TOP - 14}" width="{x(until) - x(begin):.0f}" height="{height - TOP}" '
            f'fill="{shade}"/><text x="{x(begin) + 3:.0f}" y="{TOP - 4}" fill="#59636e">{escape(name)}</text>'
        )
    starts = [b.at for a, b in pairwise(samples) if a.life != b.life]
    out += [f'<path d="M{x(at):.0f} {TOP}V{height - 26}" stroke="#bbb" stroke-dasharray="2 3"/>' for at in starts]
    for number, (name, lines) in enumerate(PANELS):
        out += _panel(TOP + number * (PANEL + GAP), name, lines, samples, x)
    for minute in _ticks(end / 60):
        out.append(
            f'<text x="{x(minute * 60):.0f}" y="{height - 8}" text-anchor="middle" fill="#59636e">{minute:g} min</text>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"


def _panel(
    top: int, name: str, lines: Sequence[Line], samples: Sequence[Sample], x: Callable[[float], float]
) -> Iterable[str]:
    found = [_means(samples, line.value) for line in lines]
    maximum = max((value for points in found for _, value in points), default=1.0) or 1.0
    bottom = top + PANEL
    yield f'<text x="{LEFT}" y="{top + 9}" fill="#59636e">{escape(name)}</text>'
    yield f'<path d="M{LEFT} {bottom}H{WIDTH - RIGHT}" stroke="#999"/>'
    yield f'<text x="{LEFT - 4}" y="{bottom}" text-anchor="end">0</text>'
    yield f'<text x="{LEFT - 4}" y="{top + 22}" text-anchor="end">{maximum:,.0f}</text>'
    for number, (line, points) in enumerate(zip(lines, found, strict=True)):
        colour = COLOURS[number]
        drawn = " ".join(f"{x(at):.0f},{bottom - (PANEL - 18) * value / maximum:.1f}" for at, value in points)
        yield f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="1.2"/>'
        yield f'<text x="{WIDTH - RIGHT + 8}" y="{top + 24 + 15 * number}" fill="{colour}">{escape(line.name)}</text>'


def _means(samples: Sequence[Sample], value: Callable[[Sample], float | None]) -> list[tuple[float, float]]:
    """Returns at most `POINTS` points; samples without a value are left out."""
    known = [(sample.at, found) for sample in samples if (found := value(sample)) is not None]
    size = -(-len(known) // POINTS) or 1
    parts = [known[at : at + size] for at in range(0, len(known), size)]
    return [(sum(at for at, _ in part) / len(part), sum(found for _, found in part) / len(part)) for part in parts]


def _phases(samples: Sequence[Sample]) -> list[tuple[str, float, float]]:
    """Returns name, begin and end of each phase."""
    found: list[tuple[str, float, float]] = []
    for sample in samples:
        if found and found[-1][0] == sample.phase:
            found[-1] = (sample.phase, found[-1][1], sample.at)
        else:
            begin = found[-1][2] if found else 0.0
            found.append((sample.phase, begin, sample.at))
    return found


def _ticks(minutes: float) -> list[float]:
    step = next((each for each in (1, 2, 5, 10, 20, 30) if minutes / each <= 8), 60)
    return [float(each) for each in range(0, int(minutes) + 1, step)]
