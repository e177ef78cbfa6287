"""Gradients within the affine hull, and the slopes they show.

A gradient's part across aff(K) moves no decision within K, but would move its infeasible iterate y
away from K: it is taken off first.

Learners square slopes, and multiply them by the radius. A slope whose square would overflow, or
lose its digits, is refused: taken for 0 it would be a loss that no step reduces, or a constraint
that no step satisfies. Beside slopes that are known already, though, what is below their rounding
is 0: a curved loss at its minimum.
"""

import math
from typing import NamedTuple

import numpy as np

from tidewolf.core import arrays, errors, feedback
from tidewolf.core.batch import Batch
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats

_ROUNDING = 1e3  # A gradient across aff(K) leaves a tangent of at most this many eps of its size.
_ACROSS = 1e-4  # A tangent whose square is below this share of the gradient's is taken once more.


class Slopes(NamedTuple):
    """The largest gradient norms of losses and of constraints, given or observed so far."""

    loss: float
    constraint: float

    @property
    def ratio(self) -> float:
        """G_f/G_g, the size of a multiplier; 1 where one of them is not known."""
        return self.loss / self.constraint if self.loss > 0.0 and self.constraint > 0.0 else 1.0

    def and_of(self, block: feedback.FirstOrder) -> "Slopes":
        """Those of single rounds of a block among them."""
        return Slopes(*map(max, self, (block.loss_slope, block.constraint_slope)))


class Given(NamedTuple):
    loss: float | None
    constraint: float | None

    @property
    def initial(self) -> Slopes:
        return Slopes(self.loss or 0.0, self.constraint or 0.0)


class TangentGradients(NamedTuple):
    loss: Array
    constraint: Array
    slopes: Slopes


def unit_length(K: HasLMO) -> float:
    """The radius, as the unit of lengths; a set of one point has none, and any will do."""
    return K.radius or 1.0


def tangent_gradients(
    K: HasLMO, block: feedback.FirstOrder, given: Given, known: Slopes
) -> TangentGradients:
    """Both gradients of a block within the affine hull, and the largest norms so far. Gradients
    that are not finite, or exceed a given Lipschitz constant, are refused."""
    met, n = known.and_of(block), block.rounds
    loss, loss_slope = tangent_part(K, "loss", block.loss_gradient, n, given.loss, met.loss)
    constraint, constraint_slope = tangent_part(
        K, "constraint", block.constraint_gradient, n, given.constraint, met.constraint
    )
    constraint_slope = slope_of_rounds(K, constraint_slope, block)
    slopes = Slopes(max(known.loss, loss_slope), max(known.constraint, constraint_slope))
    return TangentGradients(loss, constraint, slopes)


def tangent_part(
    K: HasLMO,
    name: str,
    gradient: Array,
    rounds: int,
    given: float | None,
    known: float = 0.0,
    size: float = 0.0,
) -> tuple[Array, float]:
    """A sum of gradients within aff(K), 0 where only rounding is left of it, and its slope per
    round.

    Refused above the slope `given`, and where its size is not moderate; `known` was seen before,
    and `size` is its norm, where that is known.
    """
    along: Array = None
    if type(gradient) is np.ndarray:
        norm2 = arrays.square(gradient)
    else:
        along = K.tangent(gradient)
        if along is gradient or size > 0.0:  # its size alone does not show a NaN in it
            along2 = arrays.inner(along, along)
            norm2 = along2 if along is gradient else size * size
        else:
            norm2, along2 = arrays.inner_products((gradient, gradient), (along, along))
    least, most = arrays.square_range(gradient)
    if not norm2 <= (most * rounds) ** 2:
        arrays.require_finite(gradient, f"The {name} gradient")
        raise _immoderate(name, arrays.length(gradient / rounds), "", "slopes", least, most)
    if norm2 < least * least:
        return _small(K, name, gradient, rounds, max(known, given or 0.0)), 0.0
    if along is None:
        along = K.tangent(gradient)
        along2 = arrays.inner(along, along)
    if along2 <= (_ROUNDING * arrays.eps_of(gradient)) ** 2 * norm2 or K.diameter == 0.0:
        return 0.0 * gradient, 0.0
    if along2 < _ACROSS * norm2:
        # what rounding left of a large part across aff(K) would be large beside the rest
        along = K.tangent(along)
    slope = math.sqrt(along2) / rounds
    if given is not None and slope > given * (1.0 + 1e-9):
        raise errors.InvalidInput(
            f"A {name} of slope {slope:.6g} was seen, above {name}_lipschitz = {given:.6g}; give a "
            "larger one, or none."
        )
    if not arrays.LEAST <= slope * K.radius <= arrays.MOST:
        raise _immoderate(
            name,
            slope,
            f" on a set of radius {K.radius:.3g}",
            "slopes times radii",
            arrays.LEAST,
            arrays.MOST,
        )
    return along, slope


def slope_of_rounds(K: HasLMO, slope: float, block: feedback.FirstOrder) -> float:
    """The slope per round of a block's constraints, given that of the sum of their gradients.

    Those of rounds that were played at points of their own may cancel out: where a point keeps the
    limits, some round is as steep as the mean violation over the diameter.
    """
    n, D, offset = block.rounds, K.diameter, block.constraint_offset
    if n == 1 or D == 0.0 or offset <= math.sqrt(arrays.eps_of(K.center)) * block.violation:
        return slope
    return max(slope, min(block.violation, n * slope * D + offset) / (n * D))


def tangent_slopes(K: HasLMO, name: str, batch: Batch, x: Array, known: float = 0.0) -> Floats:
    """The slope of each round at x within aff(K), for the choice of subgradient that `batch`
    makes.
    """
    gradients = batch.gradients(x)
    if len(batch) > 1:
        xp = arrays.namespace(gradients)
        known = max(known, float(xp.max(xp.abs(gradients))))  # rounds are beside one another, too
    each = (tangent_part(K, name, gradients[t, ...], 1, None, known) for t in range(len(batch)))
    return np.array([slope for _, slope in each])


def _small(K: HasLMO, name: str, gradient: Array, rounds: int, known: float) -> Array:
    """0 in place of a gradient that is none within aff(K), or is nothing beside the slopes known;
    any other is refused.
    """
    xp = arrays.namespace(gradient)
    size = float(xp.max(xp.abs(gradient)))
    if size > 0.0 and K.diameter > 0.0:
        along = arrays.norm(K.tangent(gradient / size))
        slope, eps = along * size / rounds, arrays.eps_of(gradient)
        if along > _ROUNDING * eps and not slope <= eps * known:
            raise _immoderate(name, slope, "", "slopes", *arrays.square_range(gradient))
    return 0.0 * gradient


def _immoderate(
    name: str, slope: float, where: str, what: str, least: float, most: float
) -> errors.NotFinite:
    verb = "vanish" if slope < 1.0 else "overflow"
    return errors.NotFinite(
        f"A {name} of slope {slope:.3g}{where} was given, whose square would {verb}; {what} from "
        f"{least:g} to {most:g} are accepted: give the {name} in other units."
    )
