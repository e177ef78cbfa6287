"""Migrate the state of a learner to another one: over a changed set, such as a network with one
more link, or with other settings.

Entries of points are matched by name. Of a point x = sum_v w_v v over the old set, vertices v
that use no entry that is gone and are members of the new set stay, their weights renormalised;
entries that are new carry nothing. Over the same set steps keep their size; over another they begin
as after `REMEMBERED` rounds of gradients of the usual size, for steps as small as those of a long
run find what is new too late. The regret of all rounds is at most the sum of the bounds of the
epochs, each against the best point of its own set (methods/certificate.py). The violation is that
of all rounds (methods/steps/lyapunov.py).

A descent continues that of its step scale, with its member and its steps; cells those of the same
number, or the mean of all if there are more or fewer; an adviser itself. A descent or cell that is
new starts at the mean of the others by trust, with a step of the size that its scale would have had
by now. Totals and rate of the mixer stay, so that experts that stay keep their relative weights;
each new expert gets an equal share. The sums of experts are kept, in units of the loss.

The current round keeps its decision if it can: proposals are carried over, none is asked for again.
Pending rounds continue as rounds of the new set; those whose decision is not in it are lost.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core import arrays, errors, oracle
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.experts.base import Adviser
from tidewolf.learners.core import Core
from tidewolf.learners.state import Descent, State, mixed
from tidewolf.methods import available, certificate, late
from tidewolf.methods.pool import Pool
from tidewolf.methods.steps.adagrad import DescentSums, step_factors
from tidewolf.methods.steps.hedge import Mixer, log_experts
from tidewolf.projection.active import (
    Active,
    ActiveSet,
    ExactPoint,
    FactoredActiveSet,
    FactorTable,
    as_sparse,
    factors_of,
    parts_of,
)
from tidewolf.sets.base import Projectable, membership_tolerance

# Rounds that steps over a changed set are sized by: with more of them a new link is found later,
# with none the decisions after the change move farther.
REMEMBERED = 4
_LEFT = 1e-9  # A point of whose vertices less than this share is left has none.
ALONE = ("descent",)  # What proposes the points of a learner without a mixer.


def migrated(new: Core, state: State, old: Core) -> State:
    move, experts = Move(old.K, new.K), _Names(old.names or ALONE, new.names or ALONE)
    parts, itself = _origins(new, state, old)
    pool, calls = carried(move, state.pool, parts, math.floor(state.oracle_budget + 1e-9))
    scales = np.array([*old.scales, *[old.cell_scale] * old.cells])
    longer = scales / np.array([[k] for k in (*new.scales, *[new.cell_scale] * new.cells)])
    descents = tuple(
        _descent(move, state, parts[i], longer[i], own, pool.x(i)) for i, own in enumerate(itself)
    )
    moved = [_round(move, experts, new.cells, one) for one in state.pending]
    pending = tuple(one for one in moved if one is not None)
    lost = len(moved) - len(pending)
    bounds = old.bound_of(state), old.bound_of(state, policies=True)
    untouched = pool is state.pool and new.advisers == old.advisers
    of_experts = state.accounts._asdict().items()
    sums: Any = {k: experts.numbers(v) for k, v in of_experts if isinstance(v, np.ndarray)}
    accounts = state.accounts._replace(**sums).in_units(old.caution / new.caution)
    costs = state.costs.values
    costs = None if costs is None else move.scattered(costs, math.inf)
    absent = range(new.present(state.t), len(new.scales))
    after = state._replace(
        pool=pool,
        descents=descents,
        cells=certificate.CellSums.start(new.K, new.cells),
        dual=new._weights.migrated(state.dual),
        mixer=_mixer(state.mixer, experts).without(absent),
        outage=state.outage and _mixer(state.outage, experts).without(absent),
        accounts=accounts,
        advisers=tuple(_remembered(one, move, state, old) for one in new.advisers),
        oracle_budget=state.oracle_budget - calls,
        calls=state.calls + calls,
        vertices=state.vertices if untouched else 0,
        vertices_of_waiting=state.vertices_of_waiting if untouched else 0,
        distance=descents[new._largest].distance,
        pending=pending,
        lost=state.lost + lost,
        migrations=state.migrations.following(state.t, lost, *bounds),
        budgets=state.budgets.following(),
        costs=state.costs._replace(values=costs),
    )
    return _with_current_round(move, experts, new, after)


class _Names(NamedTuple):
    old: tuple[str, ...]
    new: tuple[str, ...]

    def each(self, of_old: Iterable[Any], missing: Any = None) -> list[Any]:
        """What each old one has, for each new one; `missing` for those that are new."""
        found = dict(zip(self.old, of_old, strict=True))
        return [found.get(name, missing) for name in self.new]

    def numbers(self, of_old: Floats) -> Floats:
        return arrays.frozen(np.array(self.each(of_old.tolist(), 0.0))) if len(of_old) else of_old


def _origins(new: Core, state: State, old: Core) -> tuple[Floats, list[int | None]]:
    """The weights, 1 in all, of the old points that each new one continues from; and which of them
    it is, if it is one.
    """
    plain, cells, upcoming = len(old.scales), old.cells, state.upcoming
    each, every = np.eye(plain + cells), np.zeros(plain + cells)
    every[:plain] = upcoming.p[:plain] if old.names else 1.0
    if cells:
        every[plain:] = upcoming.p[plain] * upcoming.shares
    if every.sum() <= 0.0:
        every[:plain] = 1.0
    trusted = every / every.sum()

    itself: list[int | None] = [0] * len(new.scales)
    if old.names:
        itself = _Names(old.names[:plain], new.names[: len(new.scales)]).each(range(plain))
    parts = [trusted if i is None else each[i] for i in itself]
    if new.cells == cells:
        parts += list(each[plain:])
        itself += range(plain, plain + cells)
    else:
        parts += [each[plain:].mean(axis=0) if cells else trusted] * new.cells
        itself += [None] * new.cells
    return np.array(parts), itself


def _descent(
    move: "Move", state: State, part: Floats, longer: Floats, itself: int | None, x: Array
) -> Descent:
    """A descent at x, with the steps of the one that it is, or of the mean of its origins, each as
    many times as long as its own.
    """
    if itself is not None and move.same:
        return state.descents[itself]
    S, sigma, largest = map(np.array, zip(*(own.sums for own in state.descents), strict=True))
    sums = DescentSums(*map(arrays.frozen, (part @ S, (part * longer) @ sigma, part @ largest)))
    changes = state.migrations
    since = state.t - changes.last + (REMEMBERED if changes.times else 0)
    return Descent(x, x, move.sums(sums, min(1.0, REMEMBERED / since) if since else 1.0))


def _round(move: "Move", experts: _Names, cells: int, one: late.Committed) -> late.Committed | None:
    """A round as one of the new learner; None if what it decided is not in the set."""
    x = move.point(one.x)
    if x is None:
        return None
    mix = None if one.mix is one.x else move.point(one.mix)
    return one._replace(
        x=x,
        mix=x if mix is None else mix,
        p=experts.numbers(one.p),
        shares=_shares(one, cells),
        points=tuple(move.point(z) for z in experts.each(one.points)),
        usual=one.usual and _round(move, experts, cells, one.usual),
    )


def _shares(one: late.Committed, cells: int) -> Floats:
    return one.shares if len(one.shares) == cells else arrays.frozen(np.zeros(cells))


def _with_current_round(move: "Move", experts: _Names, new: Core, state: State) -> State:
    """The state with what is closed for the round that stands: the proposals there were, and the
    decision around entries that are out, where it is still in the set.
    """
    before, groups = state.upcoming, new._groups
    shares = _shares(before, new.cells)
    around, proposals = None, before.points
    if state.proposed is not None:
        around = _round(move, experts, len(shares), before)
        proposals = (*proposals[: len(proposals) - len(state.proposed)], *state.proposed)
    advice = [move.point(z) for z in experts.each(proposals)[groups:]]
    state, own = new._own_points(state, shares, None)
    points = (*own, *advice)
    p = new.weights_of(state.mixer, points)
    mix, last = mixed(p, points), None
    if new.max_move is not None:
        last = move.point(before.x if state.last is None else state.last)
        last = mix if last is None else last
    x = mix if last is None else available.capped(mix, last, new.max_move)
    upcoming = late.Committed(before.round, x, mix, arrays.frozen(p), shares, points)
    if around is None:
        return state._replace(upcoming=upcoming, last=last, proposed=None)
    return state._replace(upcoming=around, last=last, proposed=tuple(advice))


def _mixer(mixer: Mixer, experts: _Names) -> Mixer:
    """Weights as they are among those who stay, and one part of all for each who is new."""
    if not len(mixer.totals):
        return mixer
    here = np.array([name in experts.old for name in experts.new])
    if not here.any():
        return Mixer.start(len(experts.new))
    totals = experts.numbers(mixer.totals).copy()
    gap = mixer.gap * (log_experts(len(experts.new)) / log_experts(len(experts.old)))
    least = float(totals[here].min())
    totals[~here] = least
    if gap > 0.0:
        rate = log_experts(len(experts.new)) / gap
        with np.errstate(over="ignore"):
            mean = float(np.exp(-rate * (totals[here] - least)).mean())
        totals[~here] -= math.log(mean) / rate
    return Mixer(arrays.frozen(totals), gap, mixer.largest)


def _remembered(adviser: Adviser, move: "Move", state: State, old: Core) -> Any:
    for one, own in zip(old.advisers, state.advisers, strict=True):
        if one == adviser:
            return own if move.same else adviser.migrated(move.new, own, move.to)
    return adviser.start(move.new)


@dataclass(frozen=True)
class Move:
    old: oracle.HasLMO
    new: oracle.HasLMO

    @cached_property
    def same(self) -> bool:
        return self.old is self.new or self.old == self.new

    @cached_property
    def to(self) -> Int64s:
        """Where each entry of the old set's points is in those of the new one; -1 where it is
        gone.
        """
        before, after = (getattr(K, "names", None) for K in (self.old, self.new))
        if before is not None and after is not None:
            places = {name: i for i, name in enumerate(after)}
            found = np.array([places.get(name, -1) for name in before], dtype=np.int64)
            if (found >= 0).any():
                return found
            raise errors.InvalidInput(
                f"The new set has no entry of the old one's names, such as {before[0]!r}: nothing "
                "would go on. Begin a session of its own."
            )
        if self.old.shape == self.new.shape:
            return np.arange(math.prod(self.old.shape))
        raise errors.InvalidInput(
            f"Points of shape {self.old.shape} cannot go on as points of shape {self.new.shape}, "
            "for nothing says which entries are the same: sets of flows have names, others keep "
            "their shape."
        )

    @cached_property
    def stays(self) -> bool:
        return self.old.shape == self.new.shape and np.array_equal(self.to, np.arange(len(self.to)))

    def scattered(self, x: Array, fill: float = 0.0) -> Array:
        """The entries that are still there in their new places, and `fill` in new ones."""
        if self.stays:
            return x
        there = self.to >= 0
        found = np.full(math.prod(self.new.shape), fill)
        found[self.to[there]] = arrays.flat(arrays.to_numpy(x))[there]
        return arrays.frozen(arrays.like(found.reshape(self.new.shape), self.new.center))

    def point(self, x: Array | None) -> Array | None:
        """A member of the old set as one of the new; None if it is none."""
        if x is None or self.same:
            return x
        tolerance = membership_tolerance(x, self.old.radius)
        gone = arrays.flat(arrays.to_numpy(x))[self.to < 0]
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
        found = list[tuple[Any, int, int]]()
        for row, (vertex, old_factor) in enumerate(rows):
            sparse = as_sparse(vertex, self.old)
            used = sparse.values != 0.0
            to, values = self.to[sparse.indices[used]], sparse.values[used]
            factors = np.flatnonzero(source == old_factor)
            if (to < 0).any() or not np.isin(owner[to], factors).all():
                continue
            for b in factors.tolist():
                own = owner[to] == b
                corner = np.where(owner == b, 0.0, arrays.flat(arrays.to_numpy(K.center)))
                corner[to[own]] = values[own]
                z = arrays.like(corner.reshape(K.shape), K.center)
                if self.same or K.infeasibility(z) <= membership_tolerance(z, K.radius):
                    part = Sparse(K.shape, to[own].astype(np.int32), values[own])
                    alone = vertex if self.same else K.atom(z)
                    found.append((alone if len(source) == 1 else part, b, row))
        owners, origins = np.array([row[1:] for row in found], np.int64).reshape(-1, 2).T
        return [vertex for vertex, *_ in found], owners, origins

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
        return DescentSums(*map(arrays.frozen, (S * share, sigma * math.sqrt(share), largest)))


def _owner(K: oracle.HasLMO) -> Int64s:
    starts = step_factors(K).starts
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=math.prod(K.shape)))


def carried(move: Move, pool: Pool, given: Floats, budget: int) -> tuple[Pool, int]:
    """The points sum_j part_j x_j of points x_j of the old set, one for each row `part` of weights,
    at least 0 and 1 in all; and the oracle calls that it took.

    A point none of whose vertices is left becomes the mean of the others; if none has any, as
    a vertex that an oracle call finds in its direction, or as the center where no call is left.
    """
    K, factors, old = move.new, factors_of(move.new), pool.actives
    if move.same and np.array_equal(given, np.eye(len(old))):
        return pool, 0
    if factors is not None and factors.exact:
        assert isinstance(K, Projectable)
        inside = [arrays.frozen(K.project(move.scattered(_mean(part, old)))) for part in given]
        return Pool.of([ExactPoint(x) for x in inside]), 0
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
        table = FactorTable.of(rows, owners, first.atoms.places)
        for w in points:
            at = first.at(table, w, K.center, None)
            made.append(first.at(table, w, at.mean_of(w), None))
    return Pool.of(made), calls


def _mean(part: Floats, actives: Sequence[Active]) -> Array:
    there = [(float(share), a.x) for share, a in zip(part, actives, strict=True) if share]
    return there[0][1] if len(there) == 1 else sum(share * x for share, x in there)


def _rows(K: oracle.HasLMO, pool: Pool) -> tuple[list[tuple[Any, int]], Floats]:
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
