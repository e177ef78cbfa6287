"""Blocks of drift-plus-penalty: the sums of an open block, and the guarantee over many.

While a block is open only sums of its losses are kept, at x and at y, and the constraints
themselves. At its end comes the step of methods/steps/drift.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen, namespace, ones, to_numpy
from tidewolf.core.errors import NotFinite
from tidewolf.core.feedback import FullInformation
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound
from tidewolf.methods.steps.limits import Limits
from tidewolf.methods.steps.slopes import Given, Slopes, tangent_part, tangent_slopes


class DriftSums(NamedTuple):
    """Sums over the rounds of the open block, at its point x and at its companion y, and its
    constraints.
    """

    rounds: int
    loss_gradient: Array
    """sum of grad f_t(y)"""
    difference: float
    """sum of f_t(x) - f_t(y)"""
    breached_slopes: float
    """sum of |grad g_t(x)| within aff(K) over the rounds with g_t(x) > 0"""
    limits: Limits


class DriftSlopes(NamedTuple):
    """The slopes that the step and its bounds use, all within aff(K)."""

    loss: float
    """G_f: given, or the largest of a block at y"""
    constraint: float
    """G_g: given, or the largest of a round at y"""
    steepest_loss: float = 0.0
    """largest slope of a round at the point played"""
    steepest_constraint: float = 0.0
    """the same among the rounds with a breach"""
    met_loss: float = 0.0
    """largest slope that the losses of rounds seen together had on average at the point played"""
    met_constraint: float = 0.0
    """the same of the breached constraints"""

    @property
    def largest(self) -> Slopes:
        """The largest of a round or a block, at x or at y."""
        return Slopes(
            max(self.loss, self.steepest_loss), max(self.constraint, self.steepest_constraint)
        )


class Looked(NamedTuple):
    """The sums and the slopes with some more rounds."""

    sums: DriftSums
    slopes: DriftSlopes


def empty_drift_sums(center: Array) -> DriftSums:
    """Sums over no round."""
    return DriftSums(0, frozen(namespace(center).zeros_like(center)), 0.0, 0.0, Limits())


def look_at_rounds(
    K: HasLMO,
    x: Array,
    y: Array,
    sums: DriftSums,
    slopes: DriftSlopes,
    given: Given,
    feedback: FullInformation,
) -> Looked:
    """What these rounds add to the sums of their block, but for their constraints, and to the
    slopes; refused where a value, or a slope, is none to compute with.
    """
    (losses, constraints), n = feedback, feedback.rounds
    one = ones(n, x)
    gradient = losses.subgradient(y, one)
    G_f, G_g = slopes.largest
    tangent_part(K, "loss", gradient, n, given.loss, G_f)
    values = constraints.values(x)
    breached = to_numpy(values) > 0
    difference = float(np.sum(to_numpy(losses.values(x) - losses.values(y)), dtype=np.float64))
    slopes_x = tangent_slopes(K, "constraint", constraints, x, G_g)[breached]
    slopes_y = tangent_slopes(K, "constraint", constraints, y, G_g)
    steepest = float(np.max(tangent_slopes(K, "loss", losses, x, G_f)))
    if not np.isfinite([difference, steepest, *to_numpy(values), *slopes_x, *slopes_y]).all():
        raise NotFinite(
            "A loss or a constraint has a value or a slope that is no finite number at the "
            "points looked at."
        )
    met_constraint = slopes.met_constraint
    if breached.any():
        total = constraints.subgradient(x, namespace(x).astype(values > 0, x.dtype))
        known = max(G_g, float(slopes_x.max()))
        count = int(breached.sum())
        _, slope = tangent_part(K, "constraint", total, count, given.constraint, known)
        met_constraint = max(met_constraint, slope)
    at_x = losses.subgradient(x, one)
    _, slope = tangent_part(K, "loss", at_x, n, None, max(G_f, steepest))
    return Looked(
        sums._replace(
            rounds=sums.rounds + n,
            loss_gradient=frozen(sums.loss_gradient + gradient),
            difference=sums.difference + difference,
            breached_slopes=sums.breached_slopes + float(slopes_x.sum()),
        ),
        slopes._replace(
            constraint=given.constraint or max(slopes.constraint, float(slopes_y.max())),
            steepest_loss=max(slopes.steepest_loss, steepest),
            steepest_constraint=max(slopes.steepest_constraint, float(slopes_x.max(initial=0.0))),
            met_loss=max(slopes.met_loss, slope),
            met_constraint=met_constraint,
        ),
    )


class DriftSteps(NamedTuple):
    """A block's length, and its step in units where the losses have slope 1."""

    block: int
    alpha: float
    delta: float


def guarantee_on_intervals(
    T: int, steps: DriftSteps, distance: float, R: float, slopes: Slopes
) -> Bound:
    """What holds beforehand on every interval of T rounds, |x - y| <= distance and every step
    exact.
    """
    b, (G_f, G_g) = steps.block, slopes
    alpha, delta = G_f * steps.alpha, G_f * steps.delta
    M = -(-T // b)
    regret = (
        4.0 * b * G_f * R + 2.0 * b * R**2 * alpha + G_f**2 * T / (2.0 * alpha) + G_f * distance * T
    )
    moves = 2.0 * G_g * (T * b * (G_f * R * M / alpha + R**2)) ** 0.5
    penalties = (2.0 * alpha * R**2 + M * (G_f**2 / (2.0 * alpha) + 2.0 * G_f * R)) / delta
    return Bound(regret, moves + penalties + 4.0 * b * G_g * R + G_g * distance * T)
