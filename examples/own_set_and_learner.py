"""
Your own set and your own learner
=================================

A chain of shops plans the discounts of a season, one for each of twelve weeks. Once a price is cut
it stays cut: discounts never fall from week to week. Every round is another shop's season; what
each week's discount was worth there is known when the season is over.

Time-varying: what discounts earn, and the budget for them. Hard constraints: discounts between 0 and 1
that never fall. Soft constraints: the budget. No set of tidewolf is quite that one, so this story writes
it, runs the checks on it, plays, and then writes a learner of its own, too.
"""

from dataclasses import dataclass
from textwrap import fill
from typing import ClassVar, NamedTuple

import matplotlib.pyplot as plt
import numpy as np

import tidewolf as tw
from tidewolf.methods import (
    Bound,
    Deferred,
    EveryRound,
    Overrides,
    Slopes,
    frozen,
    tangent_gradients,
)

ROUNDS = 1_000  # 60 in the tests
WEEKS = 12  # 6 in the tests
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
rng = np.random.default_rng(0)

# %%
# The set
# -------
# .. math:: K = \{x : 0 \le x_1 \le x_2 \le \dots \le x_n \le 1\}
#
# Its corners are seasons with no discount up to some week and the full one from then on. So the
# linear minimiser looks at the :math:`n + 1` sums of the last :math:`j` costs and takes the least:
# one pass. ``infeasibility`` says by how much the worst inequality is broken, 0 for members.


@dataclass(frozen=True, eq=False, repr=False)
class NeverFalling(tw.sets.ConvexSet):
    """Discounts of n weeks between 0 and 1 that never fall."""

    n: int

    @property
    def shape(self):
        return (self.n,)

    @property
    def corners(self):
        """The last j weeks at full discount, for j = 0 .. n."""
        return np.tri(self.n + 1, self.n, -1)[:, ::-1]

    @property
    def center(self):
        return self.corners.mean(axis=0)

    @property
    def radius(self):
        return float(np.linalg.norm(self.corners - self.center, axis=1).max())

    @property
    def names(self):
        return tuple(f"week {k + 1}" for k in range(self.n))

    def lmo(self, direction):
        sums = np.concatenate([[0.0], np.cumsum(direction[::-1])])
        return self.corners[np.argmin(sums)].astype(direction.dtype)

    def infeasibility(self, x):
        return max(0.0, float(-np.diff(x, prepend=0.0, append=1.0).min()))

    @classmethod
    def examples(cls):
        return [cls(1), cls(7)]


for example in NeverFalling.examples():
    tw.testing.check_set(example)
print("every check of sets passes")

# %%
# ``check_set`` runs some twenty checks: answers are members and no sampled member is better, the
# center is inside, the radius is large enough, inputs are left alone, and so on. The first that is
# broken is named. Here is a slip, in which the sums begin at the wrong end of the season:


class Slipped(NeverFalling):
    """The same, with the costs of the first weeks where those of the last belong."""

    def lmo(self, direction):
        sums = np.concatenate([[0.0], np.cumsum(direction)])
        return self.corners[np.argmin(sums)].astype(direction.dtype)


try:
    tw.testing.check_set(Slipped(7))
except tw.core.errors.CheckFailed as broken:
    print(fill(str(broken), 88))

# %%
# Seasons
# -------
# A discount early in the season gives away margin, a late one clears the stock; where the turn is
# differs from shop to shop and moves through the rounds. The budget bounds what the discounts of a
# season may cost, weighed by what a week sells.

week = np.arange(WEEKS) / WEEKS
t = np.arange(ROUNDS)[:, None]
turn = 0.5 + 0.1 * np.sin(2 * np.pi * t / 500) + 0.1 * rng.standard_normal((ROUNDS, 1))
earned = (week - turn) + 0.3 * rng.standard_normal((ROUNDS, WEEKS))  # by a full discount
sold = 0.5 + rng.random((ROUNDS, WEEKS))
sold /= sold.sum(axis=1, keepdims=True)
budget = 0.3 + 0.08 * np.sin(2 * np.pi * t[:, 0] / 300)

K = NeverFalling(WEEKS)
losses = tw.functions.Linear(-earned)
limits = tw.functions.Affine(sold, budget)
stream = tw.Stream(losses, limits)
run = tw.run(tw.Ensemble(K), stream, decisions=True)
assert run.certificate.holds
print(run)

# %%
# That is all a set needs: every learner plays on it, the best fixed season in hindsight is found
# through its linear minimiser, and the certificate holds.
#
# A learner
# ---------
# On a set with few corners one can weigh the corners themselves: exponential weights, and a
# multiplier :math:`\lambda` that grows by whatever the budget was broken by,
#
# .. math:: s \leftarrow s + \bigl(\langle \nabla f_t + \lambda \nabla g_t^+, v_j \rangle\bigr)_j, \quad
#           p_j \propto e^{-\eta_t s_j}, \quad x = \textstyle\sum_j p_j v_j, \quad
#           \lambda \leftarrow \lambda + \rho\, g_t^+(x),
#
# with :math:`\eta_t = \sqrt{\ln m / \sum_s r_s^2}`, :math:`r_s` the range of the costs of round
# :math:`s`: it fits itself to their size. The rate :math:`\rho` does not, and has to be chosen. A
# learner is frozen settings, a state, and pure steps. ``EveryRound`` brings the clock and late feedback, ``tangent_gradients`` both gradients,
# and refuses what is no number.


class State(NamedTuple):
    """What the learner remembers."""

    t: int
    x: np.ndarray
    scores: np.ndarray
    ranges2: float = 0.0
    multiplier: float = 0.0
    slopes: Slopes = Slopes(0.0, 0.0)
    calls: int = 0
    distance: float = 0.0
    pending: tuple[Deferred, ...] = ()
    lost: int = 0
    overrides: Overrides = Overrides()


@dataclass(frozen=True, eq=False, repr=False)
class WeighCorners(EveryRound[State]):
    """Exponential weights on the corners of a set that lists them, with one multiplier."""

    state_type: ClassVar = State
    anytime: ClassVar = True

    K: NeverFalling
    rate: float = 0.5
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None

    def start(self):
        return State(0, self.K.center, frozen(np.zeros(len(self.K.corners))))

    def act(self, state):
        return state.x

    def step(self, state, block):
        met = tangent_gradients(self.K, block, self.given_slopes, state.slopes)
        costs = self.K.corners @ (met.loss + state.multiplier * met.constraint)
        ranges2 = state.ranges2 + np.ptp(costs) ** 2
        scores = state.scores + costs
        eta = np.sqrt(np.log(len(costs)) / ranges2) if ranges2 > 0.0 else 0.0
        weights = np.exp(-eta * (scores - scores.min()))
        return state._replace(
            x=frozen(weights @ self.K.corners / weights.sum()),
            scores=frozen(scores),
            ranges2=float(ranges2),
            multiplier=state.multiplier + self.rate * block.violation,
            slopes=met.slopes,
        )

    def bound(self, record):
        return Bound(None, None, "Its bound is not known.")

    @classmethod
    def examples(cls, K, horizon):
        return (cls(K), cls(K, rate=2.0))


tw.testing.check_learner(WeighCorners(NeverFalling(5)))
print("every check of learners passes")

# %%
# ``check_learner`` plays it against a small hostile stream: every point is a member, the same rounds
# give the same run bit for bit, a state that is saved and loaded goes on as if nothing had happened,
# bad feedback is refused and leaves no trace, feedback may come late. Then it plays like any other.

own = tw.run(WeighCorners(K), stream, decisions=True)
assert own.certificate.holds
print(own.bound.reason)

# %%
# Beside others
# -------------
# A plain learner of forty lines earns the most here, and breaks the budget about ten times as much as
# the Ensemble, re-solving nearly as much (the same for the seeds 0, 1 and 2). It has no guarantee,
# as ``own.bound`` says, its multiplier never falls again, and it needs the list of corners,
# which most sets do not have. The best fixed plan earns less than all of them: it may not break the
# budget in any round.

resolved = tw.run(tw.baselines.Resolve(K, columns=True), stream, decisions=True)
best = tw.best_in_hindsight(K, stream)
played = {
    "no discount": np.zeros((ROUNDS, WEEKS)),
    "even discounts": np.broadcast_to(K.center, (ROUNDS, WEEKS)),
    "re-solving for the last season": resolved.decisions.points,
    "WeighCorners": own.decisions.points,
    "Ensemble": run.decisions.points,
    "best fixed in hindsight": np.broadcast_to(best.point, (ROUNDS, WEEKS)),
}
gain = {name: -losses.values_at(points) for name, points in played.items()}
broken = {name: np.maximum(limits.values_at(points), 0.0) for name, points in played.items()}
for name in played:
    print(
        f"{name:31s} earns {gain[name].mean():6.3f} a season, "
        f"budget broken by {100 * broken[name].mean():5.2f} % of sales"
    )

# %%
fig, axes = plt.subplots(1, 2, figsize=(8, 4.5), layout="constrained")
shown = {
    "re-solving for the last season": PINK,
    "WeighCorners": ORANGE,
    "Ensemble": BLUE,
    "best fixed in hindsight": "black",
}
for name, colour in shown.items():
    axes[0].plot(np.cumsum(gain[name]), color=colour, label=name)
    axes[1].plot(np.cumsum(broken[name]), color=colour)
axes[0].set(xlabel="round", ylabel="earned so far", title="Earned")
axes[1].set(xlabel="round", ylabel="budget broken so far [seasons' sales]", yscale="symlog")
axes[1].set_title("Broken")
fig.suptitle("The own learner earns a little more, the Ensemble keeps the budget better")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()

# %%
# What to change for your own data
# --------------------------------
# - The set: write ``lmo`` for your constraints, then ``infeasibility`` for the same constraints, and let
#   ``check_set`` find where the two disagree. ``dimension`` and ``tangent`` are needed where members
#   lie in a plane, such as shares that sum to 1; see :doc:`/how-to/own-set`.
# - From the shell: ``tidewolf check mymodule:NeverFalling`` and ``tidewolf check
#   mymodule:WeighCorners``.
# - The learner: begin with one of ``tidewolf.learners`` and change one formula; ``CONTRIBUTING.md``
#   goes through it step by step.
