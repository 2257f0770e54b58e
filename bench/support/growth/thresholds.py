"""The conditions of `bench growth`, with the measured values."""

from typing import Any

RATE = 20
"""Number of passages a second added while queries are timed."""

CEILING_MB = 4 * 1024

HOSTILE_MB = 300
"""Maximum memory in MB of a synonym search in addition to the store, for any vectors (docs/explanation/store.md, "Bounds")."""


def judge_all(rows: list[dict[str, Any]], results: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the conditions with their measured values; `holds` is None for a condition that was not measured.

    `anywhere`: the condition must hold on slow machines too.
    """
    judged: list[dict[str, Any]] = []

    def judge(
        what: str,
        measured: float | None,
        at_most: float | None = None,
        at_least: float | None = None,
        anywhere: bool = False,
    ) -> None:
        good = (
            None
            if measured is None
            else (at_most is None or measured <= at_most) and (at_least is None or measured >= at_least)
        )
        bound = f"at most {at_most:g}" if at_most is not None else f"at least {at_least:g}"
        judged.append({"what": what, "measured": measured, "bound": bound, "holds": good, "anywhere": anywhere})

    def value_of(row: dict[str, Any], name: str, place: int = 0) -> float | None:
        value = row.get(name)
        return None if value is None else float(value[place] if isinstance(value, list) else value)

    def ratio(above: float | None, below: float | None) -> float | None:
        return None if above is None or not below else round(above / below, 2)

    if rows:
        small, large = rows[0], rows[-1]
        at = f"at {large['passages']:,} passages"
        for kind in ("add", "edit", "remove"):
            name = f"{kind}_ms_p50_p95"
            judge(
                f"{kind} one passage {at}: p50, times that at {small['passages']:,}",
                ratio(value_of(large, name), value_of(small, name)),
                2,
            )
        judge(f"bulk load, passages a second {at}", value_of(large, "load_passages_a_second"), at_least=100)
        judge(f"bulk load, seconds a passage, last tenth to first {at}", value_of(large, "last_tenth_to_first"), 2)
        for when, name in (("", "query_ms_p50_p95"), (f" while {RATE}/s are added", "query_while_adding_ms_p50_p95")):
            judge(f"query p50 in ms{when} {at}", value_of(large, name), 400)
            judge(f"query p95, times p50{when} {at}", ratio(value_of(large, name, 1), value_of(large, name)), 2)
        judge(
            f"passages added a second during queries, of {RATE} {at}",
            value_of(large, "added_a_second_meanwhile"),
            at_least=0.75 * RATE,
        )
        judge(
            f"resident MB, started from the snapshot {at}", value_of(large, "daemon_rss_mb"), CEILING_MB, anywhere=True
        )
        judge(
            f"resident MB, rebuilt from the tables {at}", value_of(large, "rebuilt_rss_mb"), CEILING_MB, anywhere=True
        )
        judge(f"seconds from the start of the process to ready {at}", value_of(large, "daemon_ready_s"), 10)
        judge(f"share of the synonym edges found {at}", value_of(large, "synonym_recall"), at_least=0.99, anywhere=True)
        for name, held in large.get("longest_hold_ms_by_job", {}).items():
            if name not in ("commit", "close"):
                judge(f"ms that commits waited for: {name}, {at}", held, 200)
    found = results.get("commits", {})
    judge("store after single commits, times one build", value_of(found, "size_ratio"), 3, anywhere=True)
    judge("query after single commits, times one build", value_of(found, "query_ratio"), 1.2)
    adds = results.get("live", {})
    judge("live add to MuSiQue, accepted to visible, p50 in ms", value_of(adds, "accepted_to_visible_ms_p50_p95"), 120)
    judge(
        "live add to MuSiQue, accepted to visible, p95 in ms", value_of(adds, "accepted_to_visible_ms_p50_p95", 1), 250
    )
    hostile = results.get("hostile", {})
    for name in ("equal", "cone"):
        for step in ("fill", "rebuild", "halve"):
            peaks = [
                value_of(hostile.get(each, {}).get(step, {}), "peak_mb_above_start") for each in (name, "anywhere")
            ]
            more = None if peaks[0] is None or peaks[1] is None else peaks[0] - peaks[1]
            what = f"peak MB of 50,000 vectors ({name}, {step}), beyond those that point anywhere"
            judge(what, more, HOSTILE_MB, anywhere=True)
    return judged


def violations(rows: list[dict[str, Any]], results: dict[str, Any]) -> list[str]:
    """Returns failed steps, and violated conditions that must hold on any machine."""
    parts = [*rows, *(results.get(part, {}) for part in ("commits", "crossover", "live"))]
    parts += [found for steps in results.get("hostile", {}).values() for found in steps.values()]
    failed = [name.removesuffix("_failed") for part in parts for name in part if name.endswith("_failed")]
    return [f"the step {name} failed" for name in failed] + [
        f"{one['what']}: {one['measured']}, which is to be {one['bound']}"
        for one in results["must_hold"]
        if one["anywhere"] and one["holds"] is False
    ]
