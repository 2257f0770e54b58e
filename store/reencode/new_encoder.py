"""A new encoder of a store, with everything that the switch to it needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from store.log.commit_history import encoder_facts, rule_facts
from store.reencode.new_vectors import NewVectors
from store.types import Calibration, SynonymRule


@dataclass(frozen=True, slots=True)
class NewEncoder:
    """`vectors`: those of all texts of the store. `rule`: of the synonym edges. `positions` to commit with the switch."""

    vectors: NewVectors
    calibration: Calibration
    rule: SynonymRule
    positions: Mapping[str, Any] = field(default_factory=dict)

    def facts(self, commit: int) -> dict[str, Any]:
        """Returns the facts of the switch, which is the earliest commit that can be queried afterwards."""
        made = encoder_facts(self.vectors.target.identity, self.calibration) | rule_facts(self.rule)
        return made | {"horizon": commit}
