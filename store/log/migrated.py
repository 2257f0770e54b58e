"""Result of a migration step, for the log."""

from dataclasses import dataclass, field

from store.types import ExtractionCosts


@dataclass(frozen=True, slots=True)
class Migrated:
    """`deleted_costs` are the costs of the extractions whose rows the step deleted.

    `triples_changed` says that the triples of passages may have changed. Opening the store then recomputes the synonym edges.
    """

    deleted_costs: ExtractionCosts = field(default_factory=dict)
    triples_changed: bool = False
    earlier_commits_readable: bool = False
    """Whether earlier commits can still be queried after the step."""
