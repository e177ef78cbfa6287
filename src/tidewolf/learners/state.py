"""The state of the Lyapunov family (core.py): where all descents stand, what experts remember, and
what is committed for the next round.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from tidewolf.core import arrays, feedback
from tidewolf.core.types import Array, Floats
from tidewolf.methods import base, budget, certificate, late, paper, partly_seen
from tidewolf.methods.accounts import Accounts
from tidewolf.methods.late import Committed
from tidewolf.methods.pool import Pool
from tidewolf.methods.steps import adagrad, hedge, lyapunov


class Descent(NamedTuple):
    """One infeasible iterate y outside K; its member is a point of the pool."""

    y: Array
    before_projection: Array  # where y was before the last projection
    sums: adagrad.DescentSums
    distance: float = 0.0  # |x - y|


class Migrations(NamedTuple):
    """How often the set changed, and what the rounds before the last time came to."""

    times: int = 0
    last: int = 0  # rounds that were observed before
    lost: int = 0  # rounds that were pending, and played what the new set does not have
    regret: float = 0.0  # the bounds of past epochs, summed; infinite where one has none
    # the same against policies, and against fixed points where there was no context
    policy_regret: float = 0.0

    def following(self, t: int, lost: int, fixed: base.Bound, policy: base.Bound) -> "Migrations":
        regret, against = (math.inf if b.regret is None else b.regret for b in (fixed, policy))
        return Migrations(self.times + 1, t, self.lost + lost, regret, against)

    def bound(self, bound: base.Bound, past: float) -> base.Bound:
        if not self.times or bound.regret is None:
            return bound
        return bound._replace(regret=bound.regret + past)

    def notes(self) -> tuple[str, ...]:
        if not self.times:
            return ()
        changed = (
            f"The learner was changed {self.times} time{'s' * (self.times > 1)}, last after "
            f"{self.last} rounds: the bound on the regret adds up those of the epochs between, "
            "each against the best point of its own set."
        )
        lost = (
            f"{self.lost} round{'s' * (self.lost > 1)} pending at a change will not be observed: "
            "what was played is not in the changed set."
        )
        return (changed, lost) if self.lost else (changed,)


class State(NamedTuple):
    t: int
    upcoming: Committed
    pool: Pool
    descents: tuple[Descent, ...]  # one per step scale, then one per cell
    cells: certificate.CellSums  # of the context, for the bound against its policies
    dual: lyapunov.DualState
    mixer: hedge.Mixer
    accounts: Accounts
    advisers: tuple[Any, ...]
    oracle_budget: float = 0.0
    calls: int = 0
    solves: int = 0
    vertices: int = 0  # rows of the pool's table that advisers have got
    vertices_of_waiting: int = 0  # the same for those that wait for side information
    distance: float = 0.0  # |x - y| of the descent with the longest steps
    open: feedback.FirstOrder | None = None  # the sums of a block that is not over yet
    # rounds that were decided and not observed yet, oldest first
    pending: tuple[Committed, ...] = ()
    lost: int = 0
    overrides: late.Overrides = late.Overrides()
    last: Array | None = None  # what was played last, where moves are capped
    # what advisers that do not wait proposed, where entries are out in the next round
    proposed: tuple[Array | None, ...] | None = None
    # weights in an outage that moves decisions far, which begin as the others are
    outage: hedge.Mixer | None = None
    migrations: Migrations = Migrations()
    budgets: budget.BudgetSums = budget.BudgetSums()
    costs: partly_seen.LastCosts = partly_seen.LastCosts()

    @property
    def point(self) -> paper.ProjectedPoint:
        own = self.descents[0]
        return paper.ProjectedPoint(self.pool.active(0), own.before_projection, own.y, own.distance)

    def in_units(self, unit: float) -> Self:
        """The same sums where gradients are `unit` times as long."""
        if unit == 1.0:
            return self
        return self._replace(
            descents=tuple(own._replace(sums=own.sums.in_units(unit)) for own in self.descents),
            cells=self.cells.in_units(unit),
            mixer=self.mixer.in_units(unit),
            outage=self.outage and self.outage.in_units(unit),
            accounts=self.accounts.in_units(unit),
        )


def mixed(p: Floats, points: Sequence[Array | None]) -> Array:
    """sum_i p_i z_i, over those that are there; a point itself where they all are the same, or if
    there is no mixer.
    """
    if not len(p):
        assert points[0] is not None
        return points[0]
    there = [(float(w), z) for w, z in zip(p, points, strict=True) if z is not None and w > 0.0]
    first = there[0][1]
    if all(z is first or bool((z == first).all()) for _, z in there[1:]):
        return first
    mixed = there[0][0] * first
    for w, z in there[1:]:
        mixed = mixed + w * z
    return arrays.frozen(mixed)
