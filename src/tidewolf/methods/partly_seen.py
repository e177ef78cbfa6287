"""Costs of which some entries were not seen, such as those of what carried nothing in a round.

    imputed_i  =  the cost of entry i that was seen last; before any, the mean of those seen

The learner is fed the imputed loss, so its bounds are bounds on the imputed losses. A share floor
of the set (`Simplex(n, least=0.01)`) keeps every entry in use, so that each is seen again.
"""

from typing import NamedTuple

import numpy as np

from tidewolf.core import arrays
from tidewolf.core.types import Array, Floats


class LastCosts(NamedTuple):
    # the cost of each entry that was seen last, infinite if none was; None: all always were
    values: Array | None = None
    imputed: int = 0  # entries that were not seen, over all rounds
    rounds: int = 0  # with such entries

    def imputing(self, costs: Floats) -> "tuple[Floats, LastCosts]":
        """Costs with NaN where they were not seen, imputed; and what is remembered after them."""
        missing = np.isnan(costs)
        known = np.inf if self.values is None else arrays.to_numpy(self.values)
        seen = np.where(missing, known, costs)
        filled = np.where(np.isinf(seen), costs[~missing].mean(), seen)
        imputed, rounds = self.imputed + int(missing.sum()), self.rounds + bool(missing.any())
        return filled, LastCosts(arrays.frozen(seen), imputed, rounds)

    @property
    def note(self) -> str:
        if not self.imputed:
            return ""
        return (
            f"{self.imputed:,} costs in {self.rounds:,} rounds were not seen: the certificate "
            "speaks of the imputed losses, in which the cost seen last stands for each."
        )
