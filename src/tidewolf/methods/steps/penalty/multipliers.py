"""The multipliers of cuts, a quadratic program over rows of products:

    minimise   1/2 |q + A'lam|^2 - k <e, lam>     over
        lam >= 0,  sum of lam over the cuts of a round <= delta.

First by guessing which multipliers are free, which are 0 and which rounds are full
(their sum is delta): a guess makes a linear system, whose answer corrects the guess, starting from
the multipliers last found. That ends in the exact answer after a few systems, or is given up; then
an interior-point solver (PIQP) makes a better first guess, on the program brought to size 1: lam_i
in units of what alone would turn q around and undo the breach. Neither is believed: what comes back
is made feasible, and the caller measures how good it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.types import Bools, Floats, Int64s
from tidewolf.methods.steps.penalty.cuts import Cuts

_GUESSES = 8
_ACCURACY = 1e-12
_SLACK = 1e-13
_SOLVED = 10.0
"""A system of nearly dependent cuts may be answered with anything."""
_FAR = 1e4
"""A limit that many units away is not shown to the solver."""
_NOTHING = 1e-9
"""An interior point never reaches 0; multipliers below this many units are."""
_LITTLE = 1e-6
"""Below this many units a first guess is 0: what is wrong about that, the next guess puts right."""


class Tight(NamedTuple):
    """A guess that came true: cuts of which it is known what they are at y + u, and the system that
    makes them so.
    """

    which: Int64s
    levels: Floats
    """k times their values: 0, or the price of a full round"""
    factor: Any
    sums: Floats
    """the full rounds among them, a row each"""
    shares: Floats
    """what the system answers to the columns of sums'"""

    def solved(self, right: Floats, total: float) -> tuple[Floats, Floats]:
        """The multipliers that the system answers to `right`, those of a full round summing to
        `total`, and the prices of that.
        """
        from scipy.linalg import cho_solve

        plain = cho_solve(self.factor, right)
        prices = np.linalg.solve(self.sums @ self.shares, self.sums @ plain - total)
        return plain - self.shares @ prices, prices

    def mended(self, cuts: Cuts, u: Floats, k: float) -> Floats:
        """u, which is (q + A'lam)/k and has lost what cancelled there, moved to where the tight
        cuts are what they should be.
        """
        off = k * cuts.values(u)[self.which] - self.levels
        return np.asarray(u - self.solved(off, 0.0)[0] @ cuts.slopes[self.which] / k)


class FoundMultipliers(NamedTuple):
    """Feasible multipliers, which of them are more than nothing, and how to mend u where that is
    known.
    """

    lam: Floats
    some: Bools
    tight: Tight | None


def multipliers(cuts: Cuts, q: Floats, k: float, delta: float, dimension: int) -> FoundMultipliers:
    """Multipliers as good as can be found; slopes lie in a space of this dimension."""
    linear = cuts.slopes @ q - k * cuts.at_y
    lengths = np.sqrt(np.diag(cuts.gram))
    sizes = lengths * float(np.linalg.norm(q)) + k * np.abs(cuts.at_y)
    found = _by_guessing(cuts, cuts.lam, linear, sizes, delta, dimension)
    if found is not None:
        return found
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        unit = (float(np.linalg.norm(q)) + k * np.maximum(cuts.at_y, 0.0) / lengths) / lengths
    unit = np.where(np.isfinite(unit) & (unit > 0.0), np.minimum(unit, delta), delta)
    best, least = np.zeros(cuts.many), 0.0
    for units, regularisation in ((unit, 1e-10), (np.full(cuts.many, delta), 1e-10), (unit, 1e-6)):
        near, content = _by_interior_point(cuts, linear, units, delta, regularisation)
        found = _by_guessing(
            cuts, np.where(near > _LITTLE * units, near, 0.0), linear, sizes, delta, dimension
        )
        if found is not None:
            return found
        cost = float(near @ (0.5 * (cuts.gram @ near) + linear))
        if cost < least:
            best, least = near, cost
        if content:
            break
    return FoundMultipliers(best, best > _NOTHING * unit, None)


def feasible(rounds: Int64s, lam: Floats, delta: float) -> Floats:
    """lam made at least 0, the sum of a round at most delta."""
    lam = np.clip(np.nan_to_num(lam, nan=0.0), 0.0, delta)
    totals = np.maximum(np.bincount(rounds, lam), delta)
    return np.asarray(lam * (delta / totals)[rounds])


def _by_guessing(
    cuts: Cuts, start: Floats, linear: Floats, sizes: Floats, delta: float, dimension: int
) -> FoundMultipliers | None:
    """The exact answer, guessed from `start`, or None; `sizes` of the terms that `linear` is a sum
    of.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    rounds, gram, lengths = cuts.rounds, cuts.gram, np.sqrt(np.diag(cuts.gram))
    free = (start > 0.0) | (gram @ start + linear < 0.0)
    full = (np.bincount(rounds, start) >= (1.0 - 1e-9) * delta) | (
        np.bincount(rounds, free & (lengths == 0.0)) > 0
    )
    for _ in range(_GUESSES):
        full &= np.bincount(rounds, free) > 0
        alone = free & (full & (np.bincount(rounds, free) == 1))[rounds]
        lam, price, tight = np.where(alone, delta, 0.0), np.zeros(len(full)), None
        loose = np.flatnonzero(free & ~alone)
        if len(loose) > 0:
            shared = np.intersect1d(np.flatnonzero(full), rounds[loose])
            if len(loose) > dimension + len(shared):
                return None
            sums = (rounds[loose] == shared[:, None]).astype(np.float64)
            system, right = gram[np.ix_(loose, loose)], -(linear[loose] + gram[loose] @ lam)
            # cuts that only their sum tells apart: firm |sum - delta|^2/2 costs nothing at the
            # answer
            firm = float(np.diag(system).max())
            try:
                factor = cho_factor(system + firm * (sums.T @ sums))
                tight = Tight(loose, np.zeros(0), factor, sums, cho_solve(factor, sums.T))
                lam[loose], price[shared] = tight.solved(
                    right + firm * delta * sums.sum(axis=0), delta
                )
            except (LinAlgError, ValueError):
                return None
            tight = tight._replace(levels=price[rounds[loose]])
        slope, slack = (
            gram @ lam + linear,
            _SLACK * (sizes + lengths * float(np.abs(lam) @ lengths)),
        )
        price[rounds[alone]] = -slope[alone]
        enter = ~free & (slope + price[rounds] < -slack)
        leave = free & (lam < 0.0)
        fuller = np.where(full, price >= 0.0, np.bincount(rounds, lam) > (1.0 + 1e-12) * delta)
        if not (enter.any() or leave.any() or (fuller != full).any()):
            solved = np.abs(slope + price[rounds])[free] <= _SOLVED * slack[free]
            return (
                FoundMultipliers(feasible(rounds, lam, delta), lam > 0.0, tight)
                if solved.all()
                else None
            )
        free, full = (free & ~leave) | enter, fuller
    return None


def _by_interior_point(
    cuts: Cuts, linear: Floats, unit: Floats, delta: float, regularisation: float
) -> tuple[Floats, bool]:
    """What PIQP finds in these units, made feasible, and whether it is content with it."""
    import piqp

    scale = float((unit * np.sqrt(np.diag(cuts.gram))).max()) or 1.0
    share = unit / scale
    c = share * (linear / scale)
    steep = max(1.0, float(np.abs(c).max()))
    P = cuts.gram * share * share[:, None] / steep
    limits = np.where(delta > _FAR * unit, np.inf, delta / unit)
    several = np.flatnonzero(
        (np.bincount(cuts.rounds) > 1) & (np.bincount(cuts.rounds, limits < np.inf) > 0)
    )
    G = np.where(cuts.rounds == several[:, None], unit / delta, 0.0)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_duality_gap_abs = _ACCURACY
    solver.settings.eps_rel = solver.settings.eps_duality_gap_rel = 10.0 * _ACCURACY
    solver.settings.reg_lower_limit = regularisation
    solver.settings.max_iter = 60
    solver.setup(
        P, c / steep, None, None, G, None, np.ones(len(several)), np.zeros(cuts.many), limits
    )
    status = solver.solve()
    lam = np.asarray(solver.result.x) * unit
    # limits far away were not shown
    within = bool((np.bincount(cuts.rounds, lam) <= (1.0 + 1e-9) * delta).all())
    return feasible(cuts.rounds, lam, delta), within and status == piqp.PIQP_SOLVED
