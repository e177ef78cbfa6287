"""Migrate the state of a learner to another one: over a changed set, or with other settings.

By name: a descent continues that of its step scale, with its member and its steps
(methods/migration.py); cells from those of the same number, or from the mean of all if there are
more or fewer; an adviser from itself. A descent or cell that is new starts at the mean of the
others by trust, with a step of the size that its scale would have had by now. Totals and rate of
the mixer go on, so that experts that stay keep their relative weights; each new expert gets an
equal share. The sums of experts (guards, losses, weights) are kept, in units of
the loss.

The round that stands keeps its decision if it can: proposals are carried over, none is asked for
again. Rounds that wait for feedback go on as rounds of the new set; those whose decision is not in
it are lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.types import Array, Floats
from tidewolf.learners.core import CELL_SCALE, Core
from tidewolf.learners.state import Committed, Descent, State, mixed
from tidewolf.methods.accounts import Accounts
from tidewolf.methods.certificate import CellSums
from tidewolf.methods.migration import Move, carried
from tidewolf.methods.moves import capped
from tidewolf.methods.steps.adagrad import DescentSums
from tidewolf.methods.steps.hedge import Mixer, log_experts

ALONE = ("descent",)
"""What proposes the points of a learner without a mixer."""


class Origin(NamedTuple):
    """The points of the old learner that a descent continues from."""

    part: Floats
    """their weights, 1 in all"""
    scale: float
    """its own step scale"""
    itself: int | None
    """the one that it is, if there is one"""


def migrated(new: Core, state: State, old: Core) -> State:
    """The state of `new` that continues `state` of `old`."""
    move, experts = Move(old.K, new.K), _Names(old.names or ALONE, new.names or ALONE)
    origins = _origins(new, state, old)
    budget = max(0, math.floor(state.oracle_budget + 1e-9))
    found = carried(move, state.pool, [origin.part for origin in origins], budget)
    scales = np.array([*old.scales, *[CELL_SCALE] * _cells(old)])
    descents = tuple(
        _descent(move, state, origin, scales, found.pool.x(i)) for i, origin in enumerate(origins)
    )
    moved = [_round(move, experts, _cells(new), one) for one in state.pending]
    pending = tuple(one for one in moved if one is not None)
    lost = len(moved) - len(pending)
    fixed = old.bound_of(state)
    policy = old.policy_bound_of(state)
    untouched = found.pool is state.pool and new.advisers == old.advisers
    after = state._replace(
        pool=found.pool,
        descents=descents,
        cells=CellSums.start(new.K, _cells(new)),
        dual=new._weights.migrated(state.dual),
        mixer=_mixer(state.mixer, experts),
        accounts=_accounts(state.accounts, experts, old.caution / new.caution),
        advisers=_advisers(move, new, state, old),
        oracle_budget=state.oracle_budget - found.calls,
        calls=state.calls + found.calls,
        vertices=state.vertices if untouched else 0,
        vertices_of_waiting=state.vertices_of_waiting if untouched else 0,
        distance=descents[new._largest].distance,
        pending=pending,
        lost=state.lost + lost,
        migrations=state.migrations.following(state.t, lost, fixed, policy),
    )
    return _with_current_round(move, experts, new, after)


class _Names(NamedTuple):
    """The members of both learners."""

    old: tuple[str, ...]
    new: tuple[str, ...]

    def each(self, of_old: Iterable[Any], missing: Any = None) -> list[Any]:
        """What each old one has, for each new one; `missing` for those that are new."""
        found = dict(zip(self.old, of_old, strict=True))
        return [found.get(name, missing) for name in self.new]

    def numbers(self, of_old: Floats) -> Floats:
        """The same of numbers, 0 for those that are new."""
        return frozen(np.array(self.each(of_old.tolist(), 0.0))) if len(of_old) else of_old


def _cells(learner: Core) -> int:
    return 0 if learner.context is None else int(learner.context.cells)


def _origins(new: Core, state: State, old: Core) -> list[Origin]:
    plain, cells, upcoming = len(old.scales), _cells(old), state.upcoming
    each, every = np.eye(plain + cells), np.zeros(plain + cells)
    every[:plain] = upcoming.p[:plain] if old.names else 1.0
    if cells:
        every[plain:] = upcoming.p[plain] * upcoming.shares
    if every.sum() <= 0.0:
        every[:plain] = 1.0
    trusted = every / every.sum()

    found = []
    for scale in new.scales:
        i = old.scales.index(scale) if scale in old.scales else None if old.names else 0
        found.append(Origin(trusted if i is None else each[i], scale, i))
    mean, same = each[plain:].mean(axis=0) if cells else trusted, _cells(new) == cells
    places = range(plain, plain + _cells(new))
    of_cells = [Origin(each[i] if same else mean, CELL_SCALE, i if same else None) for i in places]
    return [*found, *of_cells]


def _descent(move: Move, state: State, origin: Origin, scales: Floats, x: Array) -> Descent:
    """A descent at x, with the steps of the one that it is, or of the mean of its origins, each as
    many times as long as its own.
    """
    if origin.itself is not None and move.same:
        return state.descents[origin.itself]
    S, sigma, largest = map(np.array, zip(*(own.sums for own in state.descents), strict=True))
    part, longer = origin.part, scales / origin.scale
    sums = DescentSums(*map(frozen, (part @ S, (part * longer) @ sigma, part @ largest)))
    return Descent(x, x, move.sums(sums, state.migrations.remembered(state.t)))


def _round(move: Move, experts: _Names, cells: int, one: Committed) -> Committed | None:
    """A round as one of the new learner; None if what it decided is not in the set."""
    x = move.point(one.x)
    if x is None:
        return None
    mix = x if one.mix is one.x else move.point(one.mix)
    shares = _shares(one, cells)
    points = tuple(move.point(z) for z in experts.each(one.points))
    mix = x if mix is None else mix
    return one._replace(x=x, mix=mix, p=experts.numbers(one.p), shares=shares, points=points)


def _shares(one: Committed, cells: int) -> Floats:
    """The shares of the cells; none if there are others than there were."""
    return one.shares if len(one.shares) == cells else frozen(np.zeros(cells))


def _with_current_round(move: Move, experts: _Names, new: Core, state: State) -> State:
    """The state with what is closed for the round that stands: the proposals there were, and the
    decision around entries that are out, where it is still in the set.
    """
    before, groups = state.upcoming, new._groups
    shares = _shares(before, _cells(new))
    around, proposals = None, before.points
    if state.proposed is not None:
        around = _round(move, experts, len(shares), before)
        proposals = (*proposals[: len(proposals) - len(state.proposed)], *state.proposed)
    advice = [move.point(z) for z in experts.each(proposals)[groups:]]
    state, own = new._own_points(state, shares, None)
    points = (*own, *advice)
    p = new.weights_of(state, points)
    mix, last = mixed(p, points), None
    if new.max_move is not None:
        last = move.point(before.x if state.last is None else state.last)
        last = mix if last is None else last
    x = mix if last is None else capped(mix, last, new.max_move)
    upcoming = before._replace(x=x, mix=mix, p=frozen(p), shares=shares, points=points)
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
    return Mixer(frozen(totals), gap, mixer.largest)


def _accounts(accounts: Accounts, experts: _Names, unit: float) -> Accounts:
    """By name, `unit` times as large where they are in units of gradients."""
    found: Any = {
        name: experts.numbers(each)
        for name, each in accounts._asdict().items()
        if isinstance(each, np.ndarray)
    }
    return accounts._replace(**found).in_units(unit)


def _advisers(move: Move, new: Core, state: State, old: Core) -> tuple[Any, ...]:
    """What each adviser remembers of the set as it is now."""
    found = []
    for adviser in new.advisers:
        known = zip(old.advisers, state.advisers, strict=True)
        own = [remembered for one, remembered in known if one == adviser]
        if own and move.same:
            found.append(own[0])
        else:
            start = adviser.migrated(new.K, own[0], move.to) if own else adviser.start(new.K)
            found.append(start)
    return tuple(found)
