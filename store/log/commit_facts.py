"""What the rows of `commits` say about the store itself: kinds of commits, facts, and the sources' positions."""

from collections.abc import Mapping, Sequence
from typing import Any

from store.types import Calibration, EncoderIdentity, SynonymRule

SETTLE = "settle"
"""Kind of the commit that recomputes all synonym edges."""
REENCODE = "reencode"
"""Kind of the commit that replaces the vectors by those of another encoder."""
STALE = "synonyms_stale"
"""Fact in a migration's row: the migration changed triples."""

PERMANENT_KINDS = ("create", "migrate", SETTLE, REENCODE)
"""Kinds of commits whose rows describe the store itself; these rows are never trimmed."""


def rule_facts(rule: SynonymRule) -> dict[str, Any]:
    """The facts of a commit that makes all synonym edges by `rule`."""
    return {
        "synonym_rule": SynonymRule.VERSION,
        "synonym_threshold": rule.threshold,
        "synonym_variants": rule.variants,
    }


def encoder_facts(encoder: EncoderIdentity, calibration: Calibration | None) -> dict[str, Any]:
    """The facts of a commit from which on all vectors are by `encoder`."""
    facts: dict[str, Any] = {"encoder": encoder.name, "dim": encoder.dim}
    if calibration is not None:
        facts["calibration"] = [calibration.synonym_threshold, calibration.weak_below]
    return facts


def made_by(all_facts: Sequence[Mapping[str, Any]]) -> tuple[EncoderIdentity, Calibration | None]:
    """Returns the encoder of the vectors, and its calibration if the log has one. Raises KeyError for a log without."""
    facts = next((facts for facts in reversed(all_facts) if "encoder" in facts), all_facts[0])
    kept = facts.get("calibration")
    return EncoderIdentity(facts["encoder"], facts["dim"]), None if kept is None else Calibration(*kept)


def change_positions(kept: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Applies a commit's positions to those before it. None removes a position."""
    for key, value in changes.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = value


def edges_rule(all_facts: Sequence[Mapping[str, Any]]) -> SynonymRule:
    """Returns the last rule that the facts name; the defaults if they name none, as in a log of an earlier release."""
    made = [facts for facts in all_facts if "synonym_threshold" in facts]
    if not made:
        return SynonymRule()
    return SynonymRule(made[-1]["synonym_threshold"], made[-1].get("synonym_variants", True))
