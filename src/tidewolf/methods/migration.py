"""Carry the state of a learner over to a changed set, such as a network with one more link.

Entries of points are matched by name. Of a point x = sum_v w_v v over the old set, vertices v
that use no entry that is gone and are members of the new set stay, their weights renormalised;
entries that are new carry nothing. Over the same set steps keep their size; over another they begin
as after `REMEMBERED` rounds of gradients of the usual size, for steps as small as those of a long
run find what is new too late. The regret of all rounds is at most the sum of the bounds of the
epochs, each against the best point of its own set (certificate.py). The violation is that of
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
from tidewolf.core.arrays import flat, frozen, like, to_numpy
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.methods.base import Bound, Learner, refuse_state
from tidewolf.methods.pool import Pool
from tidewolf.methods.steps.adagrad import DescentSums, step_factors
from tidewolf.projection.active import Active, ActiveSet, ExactPoint, factors_of
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
    """the bounds of past epochs, summed; infinite where one has none"""
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
        """The bound of all rounds, given that of this epoch and the regret of those before."""
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
        """A member of the old set as one of the new; None if it is none."""
        if x is None or self.same:
            return x
        tolerance = membership_tolerance(x, self.old.radius)
        gone = flat(to_numpy(x))[self.to < 0]
        if gone.size and float(np.abs(gone).max()) > tolerance:
            return None
        z = self.scattered(x)
        return z if self.new.infeasibility(z) <= membership_tolerance(z, self.new.radius) else None

    @cached_property
    def owners(self) -> tuple[Int64s, Int64s]:
        """The factor of each new entry, and the old factor that each new one continues from, -1
        if none; a set that is no product is one factor.
        """
        owner, old_owner = _owner(self.new), _owner(self.old)
        source = np.full(len(step_factors(self.new).starts), -1)
        there = np.flatnonzero(self.to >= 0)[::-1]  # the first entry that is still there decides
        source[owner[self.to[there]]] = old_owner[there]
        return owner, source

    def vertices(self, rows: Sequence[tuple[Vertex, int]]) -> tuple[list[Any], Int64s, Int64s]:
        """Vertices of factors of the old set, those that are still there, as vertices of the new
        one's factors; the factor of each, and the row that it comes from.
        """
        K, (owner, source) = self.new, self.owners
        found, owners, origins = list[Any](), list[int](), list[int]()
        for row, (vertex, old_factor) in enumerate(rows):
            sparse = as_sparse(vertex, self.old)
            used = sparse.values != 0.0
            to, values = self.to[sparse.indices[used]], sparse.values[used]
            factors = np.flatnonzero(source == old_factor)
            if (to < 0).any() or not np.isin(owner[to], factors).all():
                continue
            for b in factors.tolist():
                own = owner[to] == b
                corner = np.where(owner == b, 0.0, flat(to_numpy(K.center)))
                corner[to[own]] = values[own]
                z = like(corner.reshape(K.shape), K.center)
                if self.same or K.infeasibility(z) <= membership_tolerance(z, K.radius):
                    part = Sparse(K.shape, to[own].astype(np.int32), values[own])
                    alone = vertex if self.same else K.atom(z)
                    found.append(alone if len(source) == 1 else part)
                    owners.append(b)
                    origins.append(row)
        return found, np.array(owners, dtype=np.int64), np.array(origins, dtype=np.int64)

    def sums(self, sums: DescentSums, share: float) -> DescentSums:
        """What steps remember, this share of it where the set is another; steps of factors that are
        new, or are distinguished only now, begin anew.
        """
        if self.same:
            return sums
        before, after = step_factors(self.old), step_factors(self.new)
        if (len(before.starts) == 1) is not (len(after.starts) == 1):
            return DescentSums.start(after)
        _, source = self.owners
        S, sigma, largest = (np.where(source >= 0, each[source], 0.0) for each in sums)
        return DescentSums(*map(frozen, (S * share, sigma * math.sqrt(share), largest)))


def _owner(K: HasLMO) -> Int64s:
    """The factor of each flat entry."""
    starts = step_factors(K).starts
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=math.prod(K.shape)))


class Carried(NamedTuple):
    """Members of the new set, each a mean of members of the old one that went on."""

    pool: Pool
    calls: int
    """oracle calls that it took"""


def carried(move: Move, pool: Pool, parts: Sequence[Floats], budget: int) -> Carried:
    """The points sum_j part_j x_j of points x_j of the old set, one for each of `parts`: weights of
    at least 0 and 1 in all.

    A point none of whose vertices is left becomes the mean of the others; if none has any, as
    a vertex that an oracle call finds in its direction, or as the center where no call is left.
    """
    K, factors, given = move.new, factors_of(move.new), np.array(parts)
    old = pool.actives
    if move.same and np.array_equal(given, np.eye(len(old))):
        return Carried(pool, 0)
    if factors is not None and factors.exact:
        assert isinstance(K, Projectable)
        inside = [frozen(K.project(move.scattered(_mean(part, old)))) for part in given]
        return Carried(Pool.of([ExactPoint(x) for x in inside]), 0)
    vertices, weights = _rows(move.old, pool)
    rows, owners, origins = move.vertices(vertices)
    weights = weights[:, origins]
    q = 1 if factors is None else len(factors.starts)
    totals = np.array([np.bincount(owners, w, minlength=q) for w in weights])
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
    made: list[Active] = []
    if factors is None:
        atoms = rows[0].table()
        for count, row in enumerate(rows):
            atoms = atoms.append(row, count)
        made += [ActiveSet(atoms, w, atoms.combine(w, K.center)) for w in points]
    else:
        first = FactoredActiveSet.start(K)
        table = FactorTable.of(rows, owners, first.places)
        for w in points:
            at = first.at(table, w, K.center, None)
            made.append(first.at(table, w, at.mean_of(w), None))
    return Carried(Pool.of(made), calls)


def _mean(part: Floats, actives: Sequence[Active]) -> Array:
    there = [(float(share), a.x) for share, a in zip(part, actives, strict=True) if share]
    return there[0][1] if len(there) == 1 else sum(share * x for share, x in there)


def _rows(K: HasLMO, pool: Pool) -> tuple[list[tuple[Any, int]], Floats]:
    """The vertices of all points, each with its factor, and the weights of the points on them;
    points that are not kept as means of vertices are vertices themselves.
    """
    first = pool.actives[0]
    if isinstance(first, ExactPoint):
        parts = [parts_of(Sparse.of(active.x), step_factors(K)) for active in pool.actives]
        rows = [(part, b) for own in parts for b, part in enumerate(own)]
        return rows, np.repeat(np.eye(len(parts)), len(parts[0]), axis=1)
    weights = np.array([pool.weights(j) for j in range(len(pool.actives))])
    vertices = pool.table.vertices[: pool.count]
    owners = np.zeros(pool.count, dtype=np.int64)
    if isinstance(first, FactoredActiveSet):
        owners = pool.table.owners[: pool.count]
    return list(zip(vertices, owners.tolist(), strict=True)), weights
