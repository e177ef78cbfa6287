"""Carry the state of a learner over to a changed set, such as a network with one more link.

Entries of points are matched by name. Of a point x = sum_v w_v v over the old set, vertices v
that use no entry that is gone and are members of the new set stay, their weights renormalised;
entries that are new carry nothing. Over the same set steps keep their size; over another they begin
as after `REMEMBERED` rounds of gradients of the usual size, for steps as small as those of a long
run find what is new too late. The regret of all rounds is at most the sum of the bounds of the
stretches, each against the best point of its own set (certificate.py). The violation is that of
all rounds (steps/lyapunov.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.arrays import flat, frozen, inner, like, to_numpy
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Bools, Floats, Int64s
from tidewolf.core.vertices import Dense, LowRank, Outer, Sparse, Vertex
from tidewolf.methods.base import Bound, Learner, refuse_state
from tidewolf.methods.pool import Pool
from tidewolf.methods.steps.adagrad import DescentSums, into_balls, step_factors
from tidewolf.projection.active import Active, ExactPoint, factors_of
from tidewolf.projection.active_set import ActiveSet
from tidewolf.projection.factored import FactoredActiveSet, FactorTable, as_sparse, parts_of
from tidewolf.sets.base import Projectable, membership_tolerance

REMEMBERED = 4
"""Rounds that steps over a changed set are sized by: with more of them a new link is found later,
with none the decisions after the change move farther.
"""
_LEFT = 1e-9
"""A point of whose vertices less than this share is left has none."""


class Migrations(NamedTuple):
    """How often the set changed, and what the rounds before the last time came to."""

    times: int = 0
    last: int = 0
    """rounds that were observed before"""
    lost: int = 0
    """rounds that were pending, and played what the new set does not have"""
    regret: float = 0.0
    """the bounds of past stretches, summed; infinite where one has none"""
    policy_regret: float = 0.0
    """the same against policies, and against fixed points where there was no context"""

    def following(self, t: int, lost: int, fixed: Bound, policy: Bound) -> Migrations:
        """After another change, given the bounds of all rounds before it."""
        regret, against = (math.inf if b.regret is None else b.regret for b in (fixed, policy))
        return Migrations(self.times + 1, t, self.lost + lost, regret, against)

    def remembered(self, t: int) -> float:
        """The share of the sums of squares that is kept over another set after t rounds."""
        since = t - self.last + (REMEMBERED if self.times else 0)
        return min(1.0, REMEMBERED / since) if since else 1.0

    def bound(self, bound: Bound, past: float) -> Bound:
        """The bound of all rounds, given that of this stretch and the regret of those before."""
        if not self.times or bound.regret is None:
            return bound
        return bound._replace(regret=bound.regret + past)

    def notes(self) -> tuple[str, ...]:
        """What a reader of bounds should know."""
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


def require_of_one_kind(new: Learner[Any], state: Any, old: Any) -> None:
    """Refuse to go on from a learner of another kind, and from what is no state of it."""
    if type(old) is not type(new):
        kind = type(new).__name__
        raise WrongType(
            f"{kind} continues from the state of a {kind}, over this set or another, not from "
            f"that of {shown(old)}; start anew with tw.Session(learner)."
        )
    if not isinstance(state, new.state_type):
        refuse_state(new, state)


def entries(old: HasLMO, new: HasLMO) -> Int64s:
    """Where each entry of the old set's points is in those of the new one; -1 where it is gone."""
    before, after = (getattr(K, "names", None) for K in (old, new))
    if before is not None and after is not None:
        places = {name: i for i, name in enumerate(after)}
        found = np.array([places.get(name, -1) for name in before], dtype=np.int64)
        if (found >= 0).any():
            return found
        raise InvalidInput(
            f"The new set has no entry of the old one's names, such as {before[0]!r}: nothing "
            "would go on. Begin a session of its own."
        )
    if old.shape == new.shape:
        return np.arange(math.prod(old.shape))
    raise InvalidInput(
        f"Points of shape {old.shape} cannot go on as points of shape {new.shape}, for nothing "
        "says which entries are the same: sets of flows have names, others keep their shape."
    )


@dataclass(frozen=True)
class Move:
    """From points of one set to those of another."""

    old: HasLMO
    new: HasLMO

    @cached_property
    def same(self) -> bool:
        """Whether it is the same set."""
        return self.old is self.new or self.old == self.new

    @cached_property
    def to(self) -> Int64s:
        return entries(self.old, self.new)

    @cached_property
    def stays(self) -> bool:
        """Whether every entry is where it was."""
        return self.old.shape == self.new.shape and np.array_equal(self.to, np.arange(len(self.to)))

    def scattered(self, x: Array, fill: float = 0.0) -> Array:
        """The entries that are still there in their new places, and `fill` in new ones."""
        if self.stays:
            return x
        there = self.to >= 0
        found = np.full(math.prod(self.new.shape), fill)
        found[self.to[there]] = flat(to_numpy(x))[there]
        return frozen(like(found.reshape(self.new.shape), self.new.center))

    def point(self, x: Array | None) -> Array | None:
        """A member of the old set as one of the new; None where it is none."""
        if x is None or self.same:
            return x
        tolerance = membership_tolerance(x, self.old.radius)
        gone = flat(to_numpy(x))[self.to < 0]
        if gone.size and float(np.abs(gone).max()) > tolerance:
            return None
        z = self.scattered(x)
        return z if self.new.infeasibility(z) <= membership_tolerance(z, self.new.radius) else None

    def vertex(self, v: Vertex) -> Vertex | None:
        """A vertex of the old set as a member of the new; None where it is none."""
        if self.same:
            return v
        z = self.point(v.dense(self.old.center))
        if z is None:
            return None
        kind = type(self.new.atom(self.new.center))
        if type(v) is not kind:
            return self.new.atom(z)
        if isinstance(v, Sparse):
            to = self.to[v.indices]
            used = (v.values != 0.0) & (to >= 0)
            return Sparse(self.new.shape, to[used].astype(np.int32), v.values[used])
        return v if self.stays and kind in (Dense, LowRank, Outer) else self.new.atom(z)

    @cached_property
    def owners(self) -> tuple[Int64s, Int64s]:
        """The factor of each new entry, and the old factor that each new one continues from, -1
        where none.
        """
        before, after = factors_of(self.old), factors_of(self.new)
        assert before is not None
        assert after is not None
        old_owner = _owner(before.starts, math.prod(self.old.shape))
        owner = _owner(after.starts, math.prod(self.new.shape))
        source = np.full(len(after.starts), -1)
        there = np.flatnonzero(self.to >= 0)[::-1]  # the first entry that is still there decides
        source[owner[self.to[there]]] = old_owner[there]
        return owner, source

    def rows(self, table: FactorTable, count: int) -> tuple[list[Sparse | None], Int64s]:
        """Vertices of factors as those of the new set, None where they are none, and the factor of
        each.
        """
        K, (owner, source) = self.new, self.owners
        found: list[Sparse | None] = []
        owners = np.zeros(count, dtype=np.int64)
        for row in range(count):
            part = slice(table.starts[row], table.starts[row + 1])
            indices, values = self.to[table.indices[part]], table.values[part]
            indices, values = indices[values != 0.0], values[values != 0.0]
            homes: Int64s = np.unique(owner[indices][indices >= 0])
            if not len(indices):  # the origin, in the factor that continues its own
                homes = np.flatnonzero(source == table.owners[row])[:1]
            found.append(None)
            if len(homes) == 1 and (indices >= 0).all():
                corner = np.where(owner == homes[0], 0.0, flat(K.center))
                corner[indices] = values
                corner = corner.reshape(K.shape)
                if self.same or K.infeasibility(corner) <= membership_tolerance(corner, K.radius):
                    found[row] = Sparse(K.shape, indices.astype(np.int32), values)
                    owners[row] = homes[0]
        return found, owners

    def sums(self, sums: DescentSums, share: float) -> DescentSums:
        """What steps remember, this share of it where the set is another; steps of factors that are
        new, or are told apart only now, begin anew.
        """
        after = step_factors(self.new)
        if self.same:
            return sums
        if len(step_factors(self.old).starts) == len(after.starts) == 1:
            source = np.zeros(1, dtype=np.int64)
        elif factors_of(self.old) is None or factors_of(self.new) is None:
            return DescentSums.start(after)
        else:
            _, source = self.owners
        S, sigma, largest = (np.where(source >= 0, each[source], 0.0) for each in sums)
        return DescentSums(*map(frozen, (S * share, sigma * math.sqrt(share), largest)))

    def infeasible_iterate(self, y: Array, x: Array, whole: bool) -> Array:
        """y near the member x: where it was, if all vertices of its member are still there, else
        at x.
        """
        if self.same:
            return y
        K, factors = self.new, step_factors(self.new)
        if not whole or factors.exact:
            return x
        y = K.center + K.tangent(self.scattered(y) - K.center)
        return frozen(into_balls(y, K.center, factors))


def _owner(starts: Int64s, size: int) -> Int64s:
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=size))


def apart(x: Array, y: Array) -> float:
    """|x - y|."""
    return 0.0 if x is y else math.sqrt(inner(x - y, x - y))


class Carried(NamedTuple):
    """Members of the new set, each a mean of members of the old one that went on."""

    pool: Pool
    whole: tuple[bool, ...]
    """whether every vertex of each is still there"""
    calls: int
    """oracle calls that it took"""


def carried(move: Move, pool: Pool, parts: Sequence[Floats], budget: int) -> Carried:
    """The points sum_j part_j x_j of points x_j of the old set, one for each of `parts`: weights of
    at least 0 and 1 in all.

    A point none of whose vertices is left becomes the mean of the others; where none has any, as
    a vertex that an oracle call finds in its direction, or as the center where no call is left.
    """
    K, factors, given = move.new, factors_of(move.new), np.array(parts)
    old = pool.actives
    if move.same and np.array_equal(given, np.eye(len(old))):
        return Carried(pool, (True,) * len(old), 0)
    if factors is not None and factors.exact:
        assert isinstance(K, Projectable)
        inside = [frozen(K.project(move.scattered(_mean(part, old)))) for part in given]
        return Carried(Pool.of([ExactPoint(x) for x in inside]), (False,) * len(inside), 0)
    rows, owners, weights = _rows(move, pool)
    q = 1 if factors is None else len(factors.starts)
    totals = np.array([np.bincount(owners, w, minlength=q) for w in weights])
    whole: Bools = np.all(totals >= 1.0 - _LEFT, axis=1)
    left, calls = totals > _LEFT, 0
    bare = np.flatnonzero(~left.any(axis=0))
    if len(bare):
        filler = K.atom(K.center)
        if budget >= 1:
            direction = K.center - move.scattered(_mean(given.mean(axis=0), old))
            filler, calls = K.answer(K.tangent(direction)).vertex, 1
        more = [filler] if factors is None else parts_of(as_sparse(filler, K), factors)
        rows, owners = [*rows, *(more[b] for b in bare)], np.append(owners, bare)
        weights = np.hstack([weights, np.ones((len(old), len(bare)))])
        totals[:, bare], left[:, bare] = 1.0, True
    weights = weights / np.where(left, totals, 1.0)[:, owners]
    for j, b in np.argwhere(~left):  # the mean of those that have vertices there
        own = owners == b
        weights[j, own] = weights[left[:, b]][:, own].mean(axis=0)
    points = given @ weights
    sound = tuple(bool(whole[part > 0.0].all()) for part in given)
    made: list[Active] = []
    if factors is None:
        atoms = rows[0].table()
        for count, row in enumerate(rows):
            atoms = atoms.append(row, count)
        made += [ActiveSet(atoms, w, atoms.combine(w, K.center)) for w in points]
    else:
        table = FactorTable.of(rows, owners)
        first = FactoredActiveSet.start(K)
        for w in points:
            at = first.at(table, w, K.center, None)
            made.append(first.at(table, w, at.mean_of(w), None))
    return Carried(Pool.of(made), sound, calls)


def _mean(part: Floats, actives: Sequence[Active]) -> Array:
    there = [(float(share), a.x) for share, a in zip(part, actives, strict=True) if share]
    return there[0][1] if len(there) == 1 else sum(share * x for share, x in there)


def _rows(move: Move, pool: Pool) -> tuple[list[Any], Int64s, Floats]:
    """The vertices of all points that are still there, the factor of each, and the weights of the
    points on them.
    """
    factors, first = factors_of(move.new), pool.actives[0]
    kind = ActiveSet if factors is None else FactoredActiveSet
    if not isinstance(first, kind):
        return _alone(move, pool)
    weights = np.array([pool.weights(j) for j in range(len(pool.actives))])
    moved: list[Any]
    if isinstance(first, ActiveSet):
        moved = [move.vertex(v) for v in pool.table.vertices[: pool.count]]
        owners = np.zeros(pool.count, dtype=np.int64)
    else:
        moved, owners = move.rows(pool.table, pool.count)
    kept = np.array([row is not None for row in moved], dtype=bool)
    return [row for row in moved if row is not None], owners[kept], weights[:, kept]


def _alone(move: Move, pool: Pool) -> tuple[list[Any], Int64s, Floats]:
    """The points themselves as vertices, where the sets keep theirs in different ways."""
    factors = factors_of(move.new)
    rows: list[Any] = []
    owners: list[int] = []
    columns: list[int] = []
    for j, active in enumerate(pool.actives):
        x = move.point(active.x)
        if x is None:
            continue
        atom = move.new.atom(x)
        own = [atom] if factors is None else parts_of(as_sparse(atom, move.new), factors)
        rows += own
        owners += range(len(own))
        columns += [j] * len(own)
    weights = np.zeros((len(pool.actives), len(rows)))
    weights[columns, np.arange(len(rows))] = 1.0
    return rows, np.array(owners, dtype=np.int64), weights
