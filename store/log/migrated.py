"""Result of a migration step, for the log."""

from dataclasses import dataclass, field

from store.types import ExtractionCosts


@dataclass(frozen=True, slots=True)
class Migrated:
    """`deleted_costs` are the costs of the extractions whose rows the step deleted.

    `tables_changed` is False for a step after which the rows of earlier commits are what they were. `triples_changed` says
    that the triples of passages may have changed. Opening the store then recomputes the synonym edges.
    """

    deleted_costs: ExtractionCosts = field(default_factory=dict)
    triples_changed: bool = False
    tables_changed: bool = True
