"""One quantity that a server limits, such as calls at once: lowered where it was too high, then raised along a cubic curve.

The curve is that of CUBIC (Ha, Rhee and Xu, "CUBIC: a new TCP-friendly high-speed TCP variant", 2008; RFC 9438), in parts of
the plateau instead of packets: steep far below the level that was accepted last (the plateau), flat around it, and steep again
beyond it, where the limit may have been lifted.
"""

import math
from dataclasses import dataclass

AMPLITUDE = 0.2
"""The part of the plateau by which the value rises in the first `recovery_s` beyond it."""
RECOVERY_S = 3.0
"""How long the curve takes from `1 - AMPLITUDE` of the plateau to the plateau, and as long again beyond it."""
MAX_RECOVERY_S = 24.0
"""The same where the limit was met again and again at the same level: each time anew costs a refused call."""
RECOVERY_FACTOR = 2.0
SAME_LEVEL = 0.15
"""Levels that differ by no more than this part are the same."""
DOUBLING_S = 1.5
"""While no level is known, the value doubles in this time."""


@dataclass(slots=True)
class AdaptiveLimit:
    """`value`: what is allowed now, `most` at the most. `plateau`: what was accepted last, None while that is not known."""

    value: float
    most: float = math.inf
    plateau: float | None = None
    recovery_s: float = RECOVERY_S

    @property
    def probes(self) -> bool:
        """Whether the value is higher than anything that is known to be accepted."""
        return self.plateau is None or self.value > self.plateau

    def grow(self, seconds: float) -> None:
        """After `seconds` in which the value was used in full."""
        if self.plateau is None:
            self.value = min(self.value * 2.0 ** min(seconds / DOUBLING_S, 20.0), self.most)
            return
        x = math.cbrt((self.value / self.plateau - 1) / AMPLITUDE)
        x += seconds / (self.recovery_s if x >= -0.1 else RECOVERY_S)
        self.value = min(self.plateau * (1 + AMPLITUDE * min(x, 2.0) ** 3), self.most)
        if x > 1:
            self.plateau, self.recovery_s = None, RECOVERY_S

    def back_off(self, value: float, plateau: float) -> None:
        """Allows `value`, and believes that `plateau` is about what is accepted."""
        if (known := self.plateau) is not None:
            same = self.value > known and abs(plateau / known - 1) < SAME_LEVEL
            self.recovery_s = min(RECOVERY_FACTOR * self.recovery_s, MAX_RECOVERY_S) if same else RECOVERY_S
            if value < known:  # one refusal at a low level may be an accident
                plateau = (plateau + known) / 2
        self.value, self.plateau = value, plateau
