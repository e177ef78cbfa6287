"""Restarts: descents that begin anew, so that regret is small on every interval of rounds, not only
since the first one (after Hazan & Seshadhri 2009; Daniely, Gonen & Shalev-Shwartz 2015).

Birth k comes after round `every` k. With k = 2^j odd, the descent in place j begins anew, so that
it lives for `every` 2^(j+1) rounds; before its first birth it is absent. Of log2(T/every) places
each keeps a descent of another age. At its birth the sums of its steps are 0, and of the trust of
all m experts it gets the share q_k = 1/(m + k):

    y    <-  c - eta G,  G its sum of gradients,  z_i a member near y     methods/steps/adagrad.py
    L_i  <-  -ln( q_k/(1 - q_k) sum_{j != i} exp(-eta L_j) )/eta          methods/steps/hedge.py

Steps along sums: after a change they lead to the new best point as soon as the sum does, and stay
there; while data keep their habits, regret over a life is bounded however long it is. The mixer
pays for births, so gaps count less and eta is larger: with N births so far and Lam = ln m,

    Delta  <-  Delta + max(0, -mix)/C,    C  =  1 + 2 ln(1 + N/m)/Lam.

*Regret over a life.* From birth b = `every` k to e, for every u in K that is feasible in its
rounds, D the diameter, h the scale of steps, S the sum of squares of the gradients it was fed,

    sum_{b <= t < e} V (f_t(x_t) - f_t(u)) + w_t g_t^+(x_t)  <=  A + price + apart,
    A  =  L_i(b) - L_i(e)  <=  C_e (2 Delta_e - Delta_b),
    price  =  sqrt(S) ( R^2/(sqrt(2) h D) + h D + 3.42 D ),   apart of methods/steps/adagrad.py.

Proof. The price is from there. Let Phi = -ln( sum_j exp(-eta L_j)/m )/eta. Mix losses from b to e
add up to at least -C_e (Delta_e - Delta_b), and Phi rises at least by them, since eta never grows;
birth n lowers it by at most ln(1/(1 - q_n))/eta, for the others keep their L, and these add up to
ln(1 + N/m)/eta at most. L_i >= Phi - ln(m)/eta at e, and L_i = Phi + ln(1/(m q_k))/eta at b, where
ln(1/(m q_k)) = ln(1 + k/m). With 1/eta = Delta/Lam at e, these three are at most C_e Delta_e.

*Every interval* [s, e). After s the next birth comes within `every` rounds; it is that of some
place j. The birth 2^j later is that of a later place, and so on until a life covers e: at most
log2((e - s)/every) + 2 lives, whose lengths at least double, and the first rounds. The regret of
the interval is at most the sum of theirs: of order sqrt(T) log T, prices of order sqrt(e - s). What
a run proves of an interval needs none of this (evaluation/intervals.py).

For experts that stay, A <= (1 + 3 C)/2 Delta in place of 2 Delta.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

from tidewolf.core import settings, values

SCALE = 2.0  # Of their steps; chosen on the streams of benchmarks/decisions.py, seeds 0 and 1.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Restarts(values.Value):
    """Descents that begin anew at dyadic times, for data whose habits change.

    Parameters
    ----------
    every : int, default 16
        One descent begins anew after so many rounds. Unit: rounds.
    kept : int, default 12
        How many there are: descent j = 1 .. `kept` begins anew every `every` 2^j rounds.

    Examples
    --------
    >>> K, stream = tw.sets.Simplex(2), tw.Stream(
    ...     tw.functions.Linear([[0.0, 1.0]] * 400 + [[1.0, 0.0]] * 400)
    ... )
    >>> learners = tw.Ensemble(K), tw.Ensemble(K, experts=[tw.experts.Restarts()])
    >>> [round(tw.run(one, stream).losses[400:].sum()) for one in learners]  # the least is 0
    [15, 3]
    """

    every: Annotated[int, settings.Count()] = 16
    kept: Annotated[int, settings.Count(most=40)] = 12

    scale: ClassVar[float] = SCALE

    @property
    def names(self) -> tuple[str, ...]:
        """By how many rounds each lives."""
        return tuple(f"restart {self.every << j}" for j in range(1, self.kept + 1))

    def present(self, t: int) -> int:
        """How many there are after t rounds: the first ones."""
        return min((t // self.every).bit_length(), self.kept)

    def births(self, before: int, t: int) -> list[tuple[int, int]]:
        """The number k and the place j of the last births after rounds before + 1 to t, one a place
        at most, oldest first.
        """
        last, found = t // self.every, list[tuple[int, int]]()
        for j in range(self.kept):
            period = 2 << j
            k = (last - (period >> 1)) // period * period + (period >> 1)
            if k > before // self.every:
                found.append((k, j))
        return sorted(found)
