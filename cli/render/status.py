"""`status` and `wait` on a terminal: one compact page."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from cli.render.lines import DIM, HEADING, align, state, text
from cli.terminal_text import count, duration, local_time, one_line, size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daemon.contract.status import ExtractionEstimate, MemoryUse, Progress, SourceStatus, Status, Unapplied


def status_lines(answer: "Status") -> list[Text]:
    head = text(
        ("hippod", HEADING), " is ", state(str(answer.state)),
        (f" · commit {answer.commit} · up {duration(answer.uptime_s)} · {size(answer.rss_bytes)}", DIM),
    )  # fmt: skip
    edges = answer.edges
    open_ = [(f"{answer.pending:,} pending", "cyan")] if answer.pending else []
    open_ += [(f"{answer.failed:,} failed", "red")] if answer.failed else []
    skipped = sum(answer.skipped.values())
    open_ += [(f"{skipped:,} skipped: {reason_counts(answer.skipped)}", "yellow")] if skipped else []
    documents = text(f"{answer.documents:,}")
    for at, part in enumerate(open_):
        documents.append_text(text(" (" if not at else ", ", part))
    documents.append(")" if open_ else "")
    counts = f"{answer.passages:,} passages · {answer.phrases:,} phrases · {answer.triples:,} triples"
    rows = [
        [text(("documents", DIM)), documents],
        [text(("memory", DIM)), text(counts)],
        [
            text(("edges", DIM)),
            text(
                f"{edges.relation:,} relation · {edges.mention:,} mention · {edges.context:,} context · "
                f"{edges.synonym:,} synonym"
            ),
        ],
        [text(("encoder", DIM)), text(answer.encoder)],
        [text(("openie", DIM)), text(answer.openie)],
    ]
    rows += [[text((head, DIM)), text(words)] for head, words in provenance_rows(answer, mixed_only=True)]
    if answer.left_out:
        counts = " · ".join(f"{many:,} {kind.replace('_', ' ')}" for kind, many in answer.left_out.items())
        rows.insert(1, [text(("left out", DIM)), text(counts)])
    if answer.llm is not None:
        rows.append([text(("llm", DIM)), text(answer.llm)])
    rows += [[text((each.task, DIM)), text(progress_words(each))] for each in answer.progress]
    if answer.memory is not None:
        rows.append([text(("RAM", DIM)), text(room_words(answer.memory))])
        if answer.memory.paused is not None:
            rows.append([text(("paused", "red")), text((one_line(answer.memory.paused), "red"))])
    if answer.trouble is not None:
        rows.append([text(("problem", "red")), text((one_line(answer.trouble), "red"))])
    if (reading := answer.extraction) is not None:
        counts = f"{reading.waiting:,} passages waiting" + (f", {reading.failed:,} failed" if reading.failed else "")
        since = f", since {local_time(reading.since)}" if reading.since else ""
        why = f" for {one_line(reading.waiting_for)}{since}" if reading.waiting_for else ""
        rows.append([text(("extraction", DIM)), text(counts, (why, "yellow"))])
        if (left := reading.estimate) is not None:
            rows.append([text(("to spend", DIM)), text(estimate_words(left))])
    return [head, *align(rows, indent=2), *_sources(answer)]


def _sources(answer: "Status") -> list[Text]:
    if not answer.sources:
        # While hippod starts, it has not opened its sources yet.
        return [] if answer.state == "starting" else [text("  ", ("no sources are followed", DIM))]
    rows = [
        [
            text(("source", DIM)),
            text(source.kind),
            text(source.name),
            text(state(source.state)),
            text("lag unknown" if source.lag is None else "up to date" if source.lag == 0 else f"lag {source.lag:,}"),
            text((_reason(source), "red")),
        ]
        for source in answer.sources
    ]
    lines = align(rows, indent=2)
    for source in answer.sources:
        if excluded := (source.model_extra or {}).get("excluded"):
            lines.append(
                text(("    excluded", DIM), f" {reason_counts(excluded)}", (f" in {one_line(source.name)}", DIM))
            )
    return lines


def _reason(source: "SourceStatus") -> str:
    extra = source.model_extra or {}
    return next((one_line(str(extra[key])) for key in ("error", "detail", "note") if extra.get(key)), "")


Shares = Sequence[tuple[str, int, float | None]]
"""(name, number, seconds to extract again); the seconds are None for a current version."""


def provenance_rows(answer: "Status", *, mixed_only: bool = False) -> list[tuple[str, str]]:
    """Returns pairs (heading, shares) for the extractors, readers and encoders that made the stored data.

    `mixed_only`: omits a row with a single current program. Supplied triples and passages without an extractor are ignored.
    """
    rows: list[tuple[str, Shares, str]] = [
        ("extracted by", [(each.name, each.passages, each.left_s) for each in answer.extractors], "passage"),
        ("parsed by", [(each.name, each.documents, None) for each in answer.readers], "document"),
        ("encoded by", [(each.name, each.passages, None) for each in answer.encoders], "passage"),
    ]
    shown = [row for row in rows if row[1] and not (mixed_only and _is_uniform(row[1]))]
    differences = [(f"{each.setting} in use", _unapplied_words(each)) for each in answer.unapplied]
    return [(head, _share_words(shares, unit)) for head, shares, unit in shown] + differences


def _unapplied_words(each: "Unapplied") -> str:
    """Returns, for example: hash/words+chars-1 (256); the configuration has all-MiniLM-L6-v2: run `hippoctl reencode`."""
    named = f"{one_line(each.content)}; the configuration has {one_line(each.configured)}"
    return f"{named}: run `{one_line(each.command)}`"


def _is_uniform(shares: Shares) -> bool:
    made = [left_s for name, _, left_s in shares if name not in ("supplied", "none")]
    return len(made) <= 1 and not any(left_s is not None for left_s in made)


def _share_words(shares: Shares, unit: str) -> str:
    """Returns, for example, "rules/6: 6,734 of 8,000 passages · rules/1: 1,266 of 8,000 passages, about 4 min to redo"."""
    total = sum(number for _, number, _ in shares)
    parts = []
    for name, number, left_s in shares:
        again = f", about {duration(left_s)} to redo" if left_s is not None else ""
        parts.append(f"{one_line(name)}: {number:,} of {count(total, unit)}{again}")
    return " · ".join(parts)


def estimate_words(left: "ExtractionEstimate") -> str:
    """Returns, for example: about 2,400 calls · 1,950,000 prompt and 600,000 completion tokens · 1.20 of money · 2 h."""
    parts = [
        f"about {left.calls:,} calls",
        f"{left.tokens.prompt:,} prompt and {left.tokens.completion:,} completion tokens",
    ]
    parts += [] if left.money is None else [f"{left.money:,.2f} of money"]
    return " · ".join([*parts, duration(left.left_s)])


def reason_counts(counts: "Mapping[str, int]") -> str:
    """Returns the counts, the largest first, such as "3 no text, 1 too large"."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {one_line(reason)}" for reason, count in ordered)


def room_words(use: "MemoryUse") -> str:
    """Returns, for example: 5.2 GiB of 6.0 GiB · 31 kB a passage · 26,000 more passages fit · full in 3 h at this rate."""
    limit = f" of {size(use.limit_bytes)}" if use.limit_bytes is not None else ", without a limit"
    parts = [f"{size(use.used_bytes)}{limit}"]
    if use.bytes_per_passage is not None:
        parts.append(f"{size(use.bytes_per_passage)} a passage")
    if use.room_passages is not None:
        parts.append(f"{use.room_passages:,} more passages fit")
    if use.full_in_s is not None:
        parts.append(f"full in {duration(use.full_in_s)} at this rate")
    return " · ".join(parts)


def progress_words(each: "Progress") -> str:
    """Returns, for example: 1,234 of 5,000 documents (25 %) · 24.7 a second · 2 min 33 s left."""
    counted = f"{each.done:,}" if each.total is None else f"{each.done:,} of {each.total:,}"
    parts = [f"{each.step}, {counted} {each.unit}" if each.step else f"{counted} {each.unit}"]
    if each.share is not None:
        parts[0] += f" ({100 * each.share:.0f} %)"
    if each.rate is not None:
        parts.append(f"{each.rate:,.1f} a second")
    if each.left_s is not None:
        parts.append(f"{duration(each.left_s)} left")
    elif not each.done:
        parts.append(duration(each.took_s))
    return " · ".join(parts)
