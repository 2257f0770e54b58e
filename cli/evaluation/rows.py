"""One row of an evaluation: how its questions are retrieved and answered. `eval` compares rows.

`--compare` names a row: a mode, with settings and options of an answer written as KEY=VALUE.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import click

from cli.options.retrieval_options import flag_of, refuse_settings_without_effect, typed_fields
from daemon.contract.choices import BUDGETS, DEEP_ONLY, DEEP_SETTINGS, MODES, NO_RETRIEVAL, SETTINGS, Answerer

ITERATIVE_STEPS = 3
"""Default number of steps of an iterative answer, equal to that of a deep answer."""
FORM_KEYS = ("length", "reason")
BUDGET_KEYS = ("steps", *BUDGETS)
DEEP_KEYS = tuple(name for name in DEEP_ONLY if name not in ("session", "deep_settings"))
KEYS_HINT = "mode, filter, answerer, read, length, reason, steps, only, quick, update, merge, forced, each_step"


@dataclass(frozen=True, slots=True)
class Row:
    """Fields of a request: `retrieval` has the filter and settings, `answering` has steps, length and similar options.
    `answerer` is None if only retrieval is measured. `read`: passages that an answer reads, None for the answerer's default."""

    name: str | None = None
    mode: str | None = None
    answerer: Answerer | None = None
    retrieval: Mapping[str, Any] = field(default_factory=dict)
    answering: Mapping[str, Any] = field(default_factory=dict)
    read: int | None = None

    @property
    def is_queried(self) -> bool:
        """Whether a separate query measures the row's retrieval. Answers in several steps report their own retrieval."""
        return self.mode != NO_RETRIEVAL and self.answerer in (None, Answerer.SINGLE)


def parse_row(spec: str, base: Row) -> Row:
    """Returns the row that `spec` names, such as "fused filter=none damping=0.3" or "answerer=deep only=local". Omitted keys
    have the values of `base`. Raises UsageError for an unknown key or value."""
    words = spec.split()
    pairs = {"mode": words[0]} if words and "=" not in words[0] else {}
    for word in words[len(pairs) :]:
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise click.UsageError(f"--compare {spec!r}: {word!r} is not KEY=VALUE.")
        pairs[key.replace("-", "_")] = value
    if "mode" in pairs and pairs["mode"] not in (*MODES, NO_RETRIEVAL):
        known = ", ".join((*MODES, NO_RETRIEVAL))
        raise click.UsageError(f"--compare {spec!r}: {pairs['mode']!r} is not a mode; the modes are {known}.")
    settings = {key: pairs.pop(key) for key in [*pairs] if key in SETTINGS}
    deep_settings = {key: pairs.pop(key) for key in [*pairs] if key in DEEP_SETTINGS}
    who, read = pairs.pop("answerer", None), pairs.pop("read", None)
    unknown = pairs.keys() - {"mode", "filter", *FORM_KEYS, *BUDGET_KEYS, *DEEP_KEYS}
    if unknown:
        raise click.UsageError(f"--compare {spec!r}: {min(unknown)!r} is not known; use {KEYS_HINT}, or a setting.")
    named = _validated(
        spec, pairs | {"settings": settings, "deep_settings": deep_settings} | ({"k": read} if read else {})
    )
    answerer = _answerer(spec, who, named, base)
    retrieval = {key: value for key, value in named.items() if key in ("filter", "settings")}
    if settings:
        retrieval["settings"] = {**base.retrieval.get("settings", {}), **named["settings"]}
    kept = (*FORM_KEYS, *BUDGET_KEYS, *DEEP_KEYS, "deep_settings") if answerer is base.answerer else FORM_KEYS
    answering = {key: value for key, value in base.answering.items() if key in kept}
    answering |= {key: value for key, value in named.items() if key in (*FORM_KEYS, *BUDGET_KEYS, *DEEP_KEYS)}
    if deep_settings:
        answering["deep_settings"] = {**answering.get("deep_settings", {}), **named["deep_settings"]}
    mode = pairs.get("mode", base.mode)
    row = Row(" ".join(words), mode, answerer, {**base.retrieval, **retrieval}, answering, named.get("k", base.read))
    return completed(row)


def completed(row: Row) -> Row:
    """Returns the row with the defaults of its answerer. Raises UsageError for an option without effect."""
    where, answering = f"--compare {row.name!r}: " if row.name else "", dict(row.answering)
    if row.answerer is None and answering:
        raise click.UsageError(f"{where}{flag_of(min(answering))} is for --answers.")
    if row.mode == NO_RETRIEVAL and row.answerer is not Answerer.SINGLE:
        raise click.UsageError(f"{where}the mode {NO_RETRIEVAL} is for --answers without steps: nothing is retrieved.")
    if row.mode == NO_RETRIEVAL and row.retrieval and row.name is None:
        raise click.UsageError(f"{flag_of(min(row.retrieval))} has no effect without retrieval.")
    if row.answerer is Answerer.DEEP and (row.mode is not None or row.retrieval):
        raise click.UsageError(
            f"{where}deep answers retrieve in a way of their own: leave modes, --filter and --set out."
        )
    if row.answerer is not Answerer.DEEP and (unused := answering.keys() & {*DEEP_KEYS, "deep_settings"}):
        raise click.UsageError(f"{where}{flag_of(min(unused))} is for --answerer deep.")
    if row.answerer is Answerer.SINGLE and (unused := answering.keys() & {*BUDGET_KEYS}):
        raise click.UsageError(f"{where}{flag_of(min(unused))} is for --answerer deep or iterative.")
    refuse_settings_without_effect(row.mode, row.retrieval.get("settings", {}), where)
    if row.answerer is Answerer.ITERATIVE:
        answering.setdefault("steps", ITERATIVE_STEPS)
    if row.answerer is Answerer.DEEP:
        answering["deep"] = True
    retrieval = {} if row.mode == NO_RETRIEVAL else row.retrieval
    return replace(row, retrieval=retrieval, answering=answering)


def _validated(spec: str, texts: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return typed_fields(texts)
    except ValueError as error:
        raise click.UsageError(f"--compare {spec!r}: {error}.") from None


def _answerer(spec: str, named: str | None, fields: Mapping[str, Any], base: Row) -> Answerer | None:
    if named is not None:
        try:
            return Answerer(named)
        except ValueError:
            known = ", ".join(each.value for each in Answerer)
            raise click.UsageError(f"--compare {spec!r}: {named!r} is not an answerer; use {known}.") from None
    if fields.get("deep_settings") or fields.keys() & {*DEEP_KEYS}:
        return Answerer.DEEP
    if fields.keys() & {*BUDGET_KEYS} and base.answerer is not Answerer.DEEP:
        return Answerer.ITERATIVE
    if fields.keys() & {*FORM_KEYS} and base.answerer is None:
        return Answerer.SINGLE
    return base.answerer
