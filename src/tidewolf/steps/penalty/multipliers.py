"""The multipliers of cuts, a quadratic program over rows of products:

    minimise   1/2 |q + A'lam|^2 - k <e, lam>     over   lam >= 0,  sum of lam over the cuts of a round <= delta.

First by guessing which multipliers are free, which are 0 and which rounds are full (their sum is delta): a guess makes a linear system,
whose answer corrects the guess, starting from the multipliers last found. That ends in the exact answer after a few systems, or is given
up; then an interior-point solver (PIQP) makes a better first guess, on the program brought to size 1: lam_i in units of what alone would
turn q around and undo the breach. Neither is believed: what comes back is made feasible, and the caller measures how good it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidewolf.steps.penalty.cuts import Cuts
from tidewolf.steps.penalty.task import Vector

Flags = np.ndarray[Any, np.dtype[np.bool_]]

_GUESSES = 8
_ACCURACY = 1e-12
_SLACK = 1e-13
_SOLVED = 10.0
"""A system of nearly dependent cuts may be answered with anything."""
_FAR = 1e4
"""A limit that many units away is not shown to the solver."""
_NOTHING = 1e-9
"""An interior point never reaches 0; multipliers below this many units are."""


def multipliers(cuts: Cuts, q: Vector, k: float, delta: float, dimension: int) -> tuple[Vector, Flags]:
    """Feasible multipliers, as good as can be found, and which of them are more than nothing; slopes lie in a space of this dimension."""
    linear = cuts.slopes @ q - k * cuts.at_y
    lengths = np.sqrt(np.diag(cuts.gram))
    slack = _SLACK * (lengths * float(np.linalg.norm(q)) + k * np.abs(cuts.at_y))
    lam = _by_guessing(cuts, cuts.lam, linear, slack, delta, dimension)
    if lam is None:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            unit = (float(np.linalg.norm(q)) + k * np.maximum(cuts.at_y, 0.0) / lengths) / lengths
        unit = np.where(np.isfinite(unit) & (unit > 0.0), np.minimum(unit, delta), delta)
        near = _by_interior_point(cuts, linear, unit, delta)
        some = near > _NOTHING * unit
        lam = _by_guessing(cuts, np.where(some, near, 0.0), linear, slack, delta, dimension)
        if lam is None:
            return near, some
    return feasible(cuts.rounds, lam, delta), lam > 0.0


def feasible(rounds: np.ndarray[Any, np.dtype[np.int64]], lam: Vector, delta: float) -> Vector:
    """lam made at least 0, the sum of a round at most delta."""
    lam = np.clip(np.nan_to_num(lam, nan=0.0), 0.0, delta)
    totals = np.maximum(np.bincount(rounds, lam), delta)
    return np.asarray(lam * (delta / totals)[rounds])


def _by_guessing(cuts: Cuts, start: Vector, linear: Vector, slack: Vector, delta: float, dimension: int) -> Vector | None:
    """The exact answer, guessed from `start`, or None."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    rounds, gram = cuts.rounds, cuts.gram
    free = (start > 0.0) | (gram @ start + linear < -slack)
    full = np.bincount(rounds, start) >= (1.0 - 1e-9) * delta
    for _ in range(_GUESSES):
        full &= np.bincount(rounds, free) > 0
        alone = free & (full & (np.bincount(rounds, free) == 1))[rounds]
        lam = np.where(alone, delta, 0.0)
        price = np.zeros(len(full))
        loose = np.flatnonzero(free & ~alone)
        if len(loose) > dimension:
            return None
        if len(loose) > 0:
            sums = (rounds[loose] == np.flatnonzero(full)[:, None]).astype(np.float64)
            shared = np.flatnonzero(full)[sums.any(axis=1)]
            sums = sums[sums.any(axis=1)]
            right = -(linear[loose] + gram[loose] @ lam)
            try:
                answers = cho_solve(cho_factor(gram[np.ix_(loose, loose)]), np.column_stack([right, sums.T]))
                price[shared] = np.linalg.solve(sums @ answers[:, 1:], sums @ answers[:, 0] - delta)
            except (LinAlgError, ValueError):
                return None
            lam[loose] = answers[:, 0] - answers[:, 1:] @ price[shared]
        slope = gram @ lam + linear
        price[rounds[alone]] = -slope[alone]
        enter = ~free & (slope + price[rounds] < -slack)
        leave = free & (lam < 0.0)
        fuller = np.where(full, price >= 0.0, np.bincount(rounds, lam) > (1.0 + 1e-12) * delta)
        if not (enter.any() or leave.any() or (fuller != full).any()):
            solved = np.abs(slope + price[rounds])[free] <= _SOLVED * slack[free]
            return lam if solved.all() else None
        free, full = (free & ~leave) | enter, fuller
    return None


def _by_interior_point(cuts: Cuts, linear: Vector, natural: Vector, delta: float) -> Vector:
    """The best that PIQP finds; where it is not content, again in units of delta, then with more regularisation."""
    import piqp

    best, least = np.zeros(cuts.many), 0.0
    for unit, regularisation in ((natural, 1e-10), (np.full(cuts.many, delta), 1e-10), (natural, 1e-6)):
        scale = float((unit * np.sqrt(np.diag(cuts.gram))).max()) or 1.0
        share = unit / scale
        c = share * (linear / scale)
        steep = max(1.0, float(np.abs(c).max()))
        P = cuts.gram * share * share[:, None] / steep
        limits = np.where(delta > _FAR * unit, np.inf, delta / unit)
        several = np.flatnonzero((np.bincount(cuts.rounds) > 1) & (np.bincount(cuts.rounds, limits < np.inf) > 0))
        G = np.where(cuts.rounds == several[:, None], unit / delta, 0.0)
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_duality_gap_abs = _ACCURACY
        solver.settings.eps_rel = solver.settings.eps_duality_gap_rel = 10.0 * _ACCURACY
        solver.settings.reg_lower_limit = regularisation
        solver.settings.max_iter = 60
        solver.setup(P, c / steep, None, None, G, None, np.ones(len(several)), np.zeros(cuts.many), limits)
        status = solver.solve()
        lam = feasible(cuts.rounds, np.asarray(solver.result.x) * unit, delta)
        cost = float(lam @ (0.5 * (cuts.gram @ lam) + linear))
        if cost < least:
            best, least = lam, cost
        if status == piqp.PIQP_SOLVED:
            break
    return best
