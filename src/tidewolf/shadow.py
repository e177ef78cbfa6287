"""What playing other points than a session decided has cost: what would we have saved?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shadow:
    """Rounds in which another point was played than was decided, and what both cost there.

    Losses and violations are sums over the rounds whose functions were seen, in their own units,
    and never mixed.
    """

    rounds: int
    """in which another point was played"""
    of: int
    """rounds observed in all"""
    valued: int
    """those overridden whose functions were seen"""
    loss: float
    """of what was played"""
    violation: float
    own_loss: float
    """of what was decided"""
    own_violation: float
    price: float
    """what overriding adds to the bound on the regret, in units of the loss"""

    @property
    def saved_loss(self) -> float:
        """How much less the decisions would have cost; below 0 where they would have cost more."""
        return self.loss - self.own_loss

    @property
    def saved_violation(self) -> float:
        """By how much less the limits would have been broken."""
        return self.violation - self.own_violation

    def __str__(self) -> str:
        if not self.rounds:
            return f"What was decided was played, in all of {self.of} rounds."
        text = f"In {self.rounds} of {self.of} rounds another point was played than was decided."
        if self.valued:
            text += (
                f" In {self.valued} of them the loss was {self.loss:.4g} and the violation was "
                f"{self.violation:.4g}; the decisions would have saved {self.saved_loss:.4g} and "
                f"{self.saved_violation:.4g} of them."
            )
        if self.valued < self.rounds:
            text += f" They add {self.price:.4g} to the bound on the regret, limits weighed in."
        return text
