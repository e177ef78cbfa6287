"""AdaHedge: weights on members that are scale-free and shift-free, and what they cost
(de Rooij, van Erven, Grunwald & Koolen 2014).

Member i has the loss l_i relative to what was played, whose own is 0; L_i is their sum.

    p_i      ~  exp( -eta L_i ),    eta = Lam/Delta,    Lam = ln m
    mix      =  -ln( sum_i p_i exp(-eta l_i) )/eta                                 (the mix loss)
    Delta   <-  Delta + max(0, 0 - mix)

eta is infinite while Delta = 0: all weight is on the members of least L, and the mix loss is what
the least L grows by. For every member

    -L_i  =  sum_t (played - l_i)  <=  2 Delta                                           (guard)

and, with losses that are linear in the members, where v is the sum of the variances of l under p
and sigma the largest range, 2 Delta <= 2 sqrt(Lam v) + sigma (4/3 Lam + 2).
Proof of the guard: -sum mix_t <= Delta by its definition, and eta never grows, so the mix losses
add up to at most min_i L_i + Lam/eta = min_i L_i + Delta.

Where playing the mix of the members' points loses at most the mix loss (losses whose exp(-eta l) is
concave: values of log wealth with eta <= 1/V), mix >= 0 and Delta stays: started at V Lam/alpha,
the run loses at most V Lam/alpha to its best member.

With a prior q, p_i ~ q_i exp(-eta L_i): L_i starts at -ln(q_i m)/eta, and that run loses at most
V ln(1/q_i)/alpha to member i.

If n rounds were played and are not observed yet (methods/late.py), Delta is at least n sigma:
they were mixed without knowing of this one, and each may turn the weights as far. The guard holds
for any Delta that is not smaller.

A member that begins anew, or for the first time, gets a share q of all weight: its L is such that
p_i = q, those of the others stay (experts/restarts.py has what that costs). Before it begins, L is
infinite.

Gaps may count less, Delta <- Delta + max(0, -mix)/C with C that never falls: eta still never grows,
and -L_i <= (1 + C) Delta. It is for members that begin anew, which the mixer pays for.

A member that is absent has l_i = 0: it "proposes what is played". Weights among those awake are p
renormalised, taken from logarithms: all of p may sit on one that falls asleep.
"""

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.types import Bools, Floats


class Mixer(NamedTuple):
    """What the weights remember, in the units of the dual state."""

    totals: Floats  # L_i
    gap: float = 0.0  # Delta
    largest: float = 0.0  # sigma

    @classmethod
    def start(cls, experts: int) -> "Mixer":
        return cls(frozen(np.zeros(experts)))

    def in_units(self, unit: float) -> "Mixer":
        return Mixer(frozen(self.totals * unit), self.gap * unit, self.largest * unit)

    def without(self, members: Collection[int]) -> "Mixer":
        """The same before these members begin."""
        if not members:
            return self
        totals = self.totals.copy()
        totals[list(members)] = math.inf
        return self._replace(totals=frozen(totals))

    def with_newcomer(self, i: int, share: float) -> "Mixer":
        """The same where member i begins with this share of all weight; as the best while eta is
        infinite.
        """
        totals = self.totals.copy()
        totals[i] = math.inf
        totals[i] = least = float(totals.min())
        if self.gap > 0.0:
            behind = np.delete(totals, i) - least
            odds = math.log(share / (1.0 - share))
            totals[i] = least - (odds + _log_of_sum(self.rate, behind)) / self.rate
        return self._replace(totals=frozen(totals))

    @property
    def rate(self) -> float:
        """eta; infinite while nothing was lost."""
        return log_experts(len(self.totals)) / self.gap if self.gap > 0.0 else math.inf

    def weights(self, awake: Bools) -> Floats:
        """p among those awake, of which there is one at least."""
        there = [t for t, is_awake in zip(self.totals.tolist(), awake, strict=True) if is_awake]
        least, rate = min(there), self.rate
        lead = [float(t == least) for t in there]
        if rate < math.inf:
            lead = [math.exp(-rate * (t - least)) for t in there]
        p: Floats = np.zeros(len(self.totals))
        p[awake] = np.array(lead) / sum(lead)  # one after another, as a kernel adds
        return p

    def updated(self, losses: Floats, pending: int = 0, spread: float = 1.0) -> "Mixer":
        """After a round with these losses relative to what was played, 0 for those absent; so many
        rounds are not observed yet; `spread` is C.
        """
        behind, rate = self.totals - self.totals.min(), self.rate
        after = behind + losses
        mix = float(after.min())  # its limit for an infinite rate
        if rate < math.inf:
            # each sum has a term of 1, so that nothing overflows or is lost
            mix += (_log_of_sum(rate, behind) - _log_of_sum(rate, after - mix)) / rate
        largest = max(self.largest, float(losses.max() - losses.min()))
        gap = max(self.gap + max(0.0, -mix) / spread, pending * largest)
        return Mixer(frozen(self.totals + losses), gap, largest)


def _log_of_sum(rate: float, behind: Floats) -> float:
    """ln sum_i exp(-rate behind_i)."""
    with np.errstate(over="ignore"):
        return math.log(float(np.exp(-rate * behind).sum()))


def log_experts(experts: int) -> float:
    """Lam; a mixer of one has nothing to choose, and any positive number will do."""
    return math.log(max(experts, 2))
