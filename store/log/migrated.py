"""What a migration's step reports to the log."""

from dataclasses import dataclass, field

from store.types import ExtractionCosts


@dataclass(frozen=True, slots=True)
class Migrated:
    """`deleted_costs`: what those extractions cost whose rows the step deleted.

    `triples_changed`: whether passages may have other triples than before. Then opening makes the synonym edges anew.
    """

    deleted_costs: ExtractionCosts = field(default_factory=dict)
    triples_changed: bool = False
