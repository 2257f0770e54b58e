"""The rule for synonym edges according to `[graph]` and the encoder's calibration."""

from daemon.config.config import Config
from store.types import Calibration, SynonymRule


def synonym_rule(config: Config, calibration: Calibration) -> SynonymRule:
    """Returns the rule. The threshold "auto" is that of the calibration."""
    threshold = config.graph.synonym_threshold
    return SynonymRule(
        calibration.synonym_threshold if threshold == "auto" else threshold, config.graph.synonym_variants
    )
