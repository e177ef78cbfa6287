"""Budgets: constraints that compensate over time. A total for a period is a plan for each round.

h_j,t(x) is what budget j spends in round t above its plan, a signed convex function: what matters
is its sum, not each round. The queue

    Q_t = max(0, Q_{t-1} + h_t(x_t)),     Q_0 = 0,

is the largest net overspend of any window that ends at t, so that max_t Q_t is the worst window:
measured, not bounded. Spending has the price (the multiplier, in units of the loss per unit spent)

    lam_t = caution (G_f/G_h) Q_t/(G_h D sqrt(t)),

and the learner sees the loss f_t + sum_j lam_j,t h_j,t in place of f_t, everything else unchanged.
G_f and G_h are the root mean squares of the gradient norms so far, within aff(K): the largest would
let one expensive round make all later ones cheap. t counts the rounds in the order in which their
feedback comes. The queue continues where a period ends: what a period may still spend
is a matter of the report, and the price that was found remains a good one.

For u in K with h_j,t(u) <= 0 in every round, f_t(x) - f_t(u) is at most the same difference of the
priced loss less lam h_t(x), since lam >= 0. Whatever bounds the regret R on the priced losses gives

    regret  <=  R - sum_j paid_j,     paid_j = sum_t lam_j,t h_j,t(x_t),

where paid may be negative and is never clipped. The bound on the violation needs no change.

Spend that is not linear is priced by its linearisation at the point that was played.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, final

import numpy as np

from tidewolf.core import arguments, arrays, errors, settings, values
from tidewolf.core.feedback import FirstOrder, FullInformation, Spend, spend_at
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.experts.context import PeriodSetting, duration
from tidewolf.functions import combined, linear
from tidewolf.methods.base import Bound
from tidewolf.methods.settings import Numbers


@final
@dataclass(frozen=True, eq=False, repr=False)
class Budget(values.Value):
    """An amount that may be spent per period, in whatever rounds are best.

    A learner that is given budgets observes what each round spends, and keeps the total near the
    plan: overspending in one round is made up for in others. Rounds before the first that has a
    time stamp, of a period that is a duration, plan nothing.

    Parameters
    ----------
    name : str
        The name, by which `spend` gives what is spent.
    total : float, optional
        The amount for one period. None: `plan` says it.
    per : int or str, optional
        The period: a number of rounds, or a duration such as "1d" with the times of the rounds.
        None: all rounds of the learner's horizon.
    plan : tuple of float, optional
        The amount for each round, in place of a total; after the last one it begins again.
    carry : bool, default False
        Whether what was spent above or below the plan of one period counts in the next.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> learner = tw.Ensemble(K, budgets=[tw.Budget("usd", total=90.0, per=100)])
    >>> session = tw.Session(learner)
    >>> for _ in range(200):  # the fast one costs 1.8 per round, the slow one nothing
    ...     session.observe(costs=[1.0, 2.0], spend={"usd": [1.8, 0.0]})
    >>> float(session.play()[0].round(1))
    0.5
    """

    name: Annotated[str, settings.Text()]
    total: Annotated[float | None, settings.Magnitude()] = None
    per: Annotated[int | str | None, PeriodSetting()] = None
    plan: Annotated[tuple[float, ...] | None, Numbers(each=settings.Number(least=0.0))] = None
    carry: Annotated[bool, settings.Flag()] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.total is None) is (self.plan is None):
            raise errors.InvalidInput(
                f"Budget {self.name!r} needs one of total and plan.", setting="total"
            )

    @property
    def seconds(self) -> float | None:
        """The period in seconds; None if it is a number of rounds."""
        return duration(self.per, "per") if isinstance(self.per, str) else None

    def planned(self, number: int, elapsed: float, horizon: int | None) -> float:
        """What may be spent in a round, counted from 0, that is so many seconds long."""
        if self.plan is not None:
            return float(self.plan[number % len(self.plan)])
        assert self.total is not None
        if (seconds := self.seconds) is not None:
            return self.total * elapsed / seconds if elapsed > 0.0 else 0.0
        rounds = self.per or horizon
        if rounds is None:
            raise errors.InvalidInput(
                f"Budget {self.name!r} needs per, or the learner a horizon.", setting="per"
            )
        return self.total / int(rounds)

    def plans(self, rounds: int, time: Floats | None) -> Floats:
        """What may be spent in each round of a record; the first lasts as long as the second."""
        if self.seconds is not None and time is None:
            raise errors.InvalidInput(
                f"Budget {self.name!r} per {self.per} needs rounds with times.", setting="per"
            )
        elapsed = np.zeros(rounds) if time is None or rounds < 2 else np.diff(time)
        each = np.append(elapsed[:1], elapsed)[:rounds].tolist()
        return np.array([self.planned(t, seconds, rounds) for t, seconds in enumerate(each)])

    def windows(self, rounds: int, time: Floats | None) -> Int64s:
        """The number of the period of each round, in order; all 0 if nothing starts over."""
        if self.carry or self.per is None:
            return np.zeros(rounds, dtype=np.int64)
        if self.seconds is None:
            return np.arange(rounds) // int(self.per)
        times = np.zeros(rounds) if time is None else np.nan_to_num(time)
        return np.floor(times / self.seconds).astype(np.int64)


def as_budgets(value: Any, what: str) -> tuple[Budget, ...]:
    items = (value,) if isinstance(value, Budget) else value
    given = arguments.as_items(items, what, "[tw.Budget(..)]")
    for one in given:
        if not isinstance(one, Budget):
            raise errors.WrongType(
                f'{what} must be tw.Budget("usd", total=..), not {arguments.shown(one)}.'
            )
    if len({one.name for one in given}) != len(given):
        raise errors.InvalidInput(f"{what} must have different names.")
    return given


# Files say budgets in tables of their own.
Budgets = Annotated[tuple[Budget, ...], settings.Is(check=as_budgets)]


def worst_windows(h: Floats, windows: Int64s) -> tuple[float, Floats]:
    """The largest net overspend of a run of rounds within one period, and the net of each."""
    worst = queue = 0.0
    for i, each in enumerate(h.tolist()):
        if i and windows[i] != windows[i - 1]:
            queue = 0.0
        queue = max(0.0, queue + each)
        worst = max(worst, queue)
    if not len(h):
        return 0.0, h
    return worst, np.add.reduceat(h, np.flatnonzero(np.diff(windows, prepend=windows[0] - 1)))


_NONE = arrays.frozen(np.zeros(0))


class BudgetSums(NamedTuple):
    """What is remembered of all budgets, one entry each."""

    names: tuple[str, ...] = ()
    rounds: int = 0
    queues: Floats = _NONE  # Q
    squares: Floats = _NONE  # sum_t |grad h_t|^2
    loss_square: float = 0.0  # sum_t |grad f_t|^2
    net: Floats = _NONE  # sum_t h_t
    paid: Floats = _NONE  # sum_t lam_t h_t, in units of the loss
    multipliers: Floats = _NONE  # lam of the last round
    time: float | None = None  # when the next round is, if that is known
    elapsed: float = 0.0  # seconds between the last two rounds whose times are known; 0 before

    def at(self, time: float) -> "BudgetSums":
        elapsed = 0.0 if self.time is None else time - self.time
        known = elapsed if elapsed > 0.0 else self.elapsed
        return self if time == self.time else self._replace(time=time, elapsed=known)

    def following(self) -> "BudgetSums":
        """What is kept if the set changes: what was paid is counted in the bound before."""
        return self._replace(paid=0.0 * self.paid)

    def charged(self, K: HasLMO, spend: Spend, loss: Array, n: int, caution: float) -> "BudgetSums":
        """After n rounds with this spend and this gradient of the loss, with the price of it."""
        if not len(self.queues) and self.names in ((), spend.names):
            none = arrays.frozen(np.zeros(len(spend.names)))
            self = self._replace(names=spend.names, queues=none, squares=none, net=none, paid=none)
        if spend.names != self.names:
            raise errors.InvalidInput(
                f"Expected the spend of {arguments.listed(self.names) or 'no budget'} in every "
                f"round, not that of {arguments.listed(spend.names) or 'none'}.",
                setting="spend",
            )
        t, h = self.rounds + n, spend.values
        squares = [arrays.norm(K.tangent(gradient)) ** 2 / n for gradient in spend.gradients]
        S_h, S_f = self.squares + squares, self.loss_square + arrays.norm(K.tangent(loss)) ** 2 / n
        G_h, G_f = np.sqrt(S_h / t), math.sqrt(S_f / t)
        Q = np.maximum(0.0, self.queues + h)
        reach = G_h * K.diameter * math.sqrt(t)
        ratio = (G_f or 1.0) / np.where(G_h > 0.0, G_h, 1.0)
        lam = np.where(reach > 0.0, caution * ratio * Q / np.where(reach > 0.0, reach, 1.0), 0.0)
        return self._replace(
            rounds=t,
            queues=arrays.frozen(Q),
            squares=arrays.frozen(S_h),
            loss_square=S_f,
            net=arrays.frozen(self.net + h),
            paid=arrays.frozen(self.paid + lam * h),
            multipliers=arrays.frozen(lam),
        )

    def less_paid(self, bound: Bound) -> Bound:
        """The bound of the losses themselves, given that of the losses with the price."""
        if bound.regret is None or not len(self.paid):
            return bound
        return bound._replace(regret=bound.regret - float(self.paid.sum()))


def priced_spend(
    K: HasLMO, sums: BudgetSums, feedback: Any, x: Array, caution: float
) -> tuple[BudgetSums, Any]:
    """The sums after feedback at x, and the feedback with the price of spending in its losses;
    both as they are if nothing is spent.
    """
    if isinstance(feedback, FullInformation) and isinstance(feedback.losses, combined.Charged):
        losses, n = feedback.losses.parts[0], len(feedback.losses)
        spend, gradient = spend_at(feedback.losses, x), losses.subgradient(x, arrays.ones(n, x))
    elif isinstance(feedback, FirstOrder) and feedback.spend is not None:
        spend, gradient, n = feedback.spend, feedback.loss_gradient, feedback.rounds
    elif sums.names and sums.rounds:
        raise errors.InvalidInput(
            f"Expected the spend of {arguments.listed(sums.names)} with the round.", setting="spend"
        )
    else:
        return sums, feedback
    assert spend is not None
    sums = sums.charged(K, spend, gradient, n, caution)
    slope = 0.0 * gradient
    for lam, one in zip(sums.multipliers.tolist(), spend.gradients, strict=True):
        slope = slope + lam * one
    if isinstance(feedback, FirstOrder):
        total = gradient + slope
        steepest = arrays.norm(total) if n == 1 else feedback.loss_slope + arrays.norm(slope)
        return sums, feedback._replace(loss_gradient=total, loss_slope=steepest, spend=None)
    offset = arrays.inner(slope, x) - float(sums.multipliers @ spend.values)
    return sums, FullInformation(_with_price(losses, slope, offset), feedback.constraints)


def _with_price(losses: Any, slope: Array, offset: float) -> Any:
    """f + <slope, x> - offset, in one round."""
    if type(losses) is linear.Linear and type(losses.C) is np.ndarray and len(losses) == 1:
        return linear.Affine._unchecked(A=losses.C + slope[None, ...], b=np.array([offset]))
    n = len(losses)
    A, b = np.repeat(arrays.to_numpy(slope)[None, ...] / n, n, axis=0), np.full(n, offset / n)
    return combined.Sum(losses, linear.Affine(A, b))
