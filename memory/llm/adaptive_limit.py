"""A limit that a server enforces, such as concurrent calls: lowered after a refusal, then raised along a cubic curve.

The curve is that of CUBIC (Ha, Rhee and Xu, "CUBIC: a new TCP-friendly high-speed TCP variant", 2008; RFC 9438), with shares of
the plateau instead of packets. The plateau is the level that was accepted last. The curve is steep far below the plateau, flat
around it, and steep again above it, because the server's limit may have been raised.
"""

import math
from dataclasses import dataclass

AMPLITUDE = 0.2
"""Share of the plateau by which the value rises in the first `recovery_s` above it."""
RECOVERY_S = 3.0
"""Seconds from `1 - AMPLITUDE` of the plateau to the plateau, and from there to `1 + AMPLITUDE` of it."""
MAX_RECOVERY_S = 24.0
"""Maximum recovery time if the limit is reached repeatedly at the same level, because each attempt costs a refused call."""
RECOVERY_FACTOR = 2.0
SAME_LEVEL = 0.15
"""Levels with at most this relative difference count as the same."""
DOUBLING_S = 1.5
"""Seconds in which the value doubles while the plateau is unknown."""


@dataclass(slots=True)
class AdaptiveLimit:
    """`value` is the current limit, `maximum` its maximum.

    `plateau` is the level that was accepted last, None if it is unknown.
    """

    value: float
    maximum: float = math.inf
    plateau: float | None = None
    recovery_s: float = RECOVERY_S

    @property
    def probes(self) -> bool:
        """Whether the value is above every level that is known to be accepted."""
        return self.plateau is None or self.value > self.plateau

    def grow(self, seconds: float) -> None:
        """Raises the value after `seconds` in which it was fully used."""
        if self.plateau is None:
            self.value = min(self.value * 2.0 ** min(seconds / DOUBLING_S, 20.0), self.maximum)
            return
        x = math.cbrt((self.value / self.plateau - 1) / AMPLITUDE)
        x += seconds / (self.recovery_s if x >= -0.1 else RECOVERY_S)
        self.value = min(self.plateau * (1 + AMPLITUDE * min(x, 2.0) ** 3), self.maximum)
        if x > 1:
            self.plateau, self.recovery_s = None, RECOVERY_S

    def back_off(self, value: float, plateau: float) -> None:
        """Lowers the value to `value`, and sets the plateau to about `plateau`."""
        if (known := self.plateau) is not None:
            same = self.value > known and abs(plateau / known - 1) < SAME_LEVEL
            self.recovery_s = min(RECOVERY_FACTOR * self.recovery_s, MAX_RECOVERY_S) if same else RECOVERY_S
            if value < known:  # a single refusal at a low level may be accidental
                plateau = (plateau + known) / 2
        self.value, self.plateau = value, plateau
