"""Cuts: affine functions below the constraints of a block,  <a_i, x - y> + e_i <= g_{t(i)}(x)  for
every x of aff(K).

Slopes a_i are within the directions of aff(K), where only those count. Points and slopes are flat
here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.types import Bools, Floats, Int64s
from tidewolf.methods.steps.penalty.task import PenaltyTask


class Cuts(NamedTuple):
    """Cuts t(i), a_i, e_i, with the products <a_i, a_j> and the multipliers last found for them."""

    rounds: Int64s
    slopes: Floats
    at_y: Floats
    gram: Floats
    lam: Floats
    idle: Int64s
    """for how many masters in a row the multiplier was 0"""

    @property
    def many(self) -> int:
        """How many."""
        return len(self.rounds)

    def values(self, u: Floats) -> Floats:
        """Every cut at y + u."""
        return np.asarray(self.at_y + self.slopes @ u)

    def model(self, u: Floats, rounds: int) -> Floats:
        """max(0, the cuts of a round) at y + u, for each of so many rounds."""
        model = np.zeros(rounds)
        np.maximum.at(model, self.rounds, self.values(u))
        return model

    def subset(self, which: Bools) -> Cuts:
        """Some of them."""
        if which.all():
            return self
        gram = self.gram[which][:, which]
        return Cuts(
            self.rounds[which],
            self.slopes[which],
            self.at_y[which],
            gram,
            self.lam[which],
            self.idle[which],
        )

    def joined(self, rounds: Int64s, slopes: Floats, at_y: Floats) -> Cuts:
        """These and new ones, their multipliers 0."""
        across = self.slopes @ slopes.T
        return Cuts(
            np.concatenate([self.rounds, rounds]),
            np.concatenate([self.slopes, slopes]),
            np.concatenate([self.at_y, at_y]),
            np.block([[self.gram, across], [across.T, slopes @ slopes.T]]),
            np.concatenate([self.lam, np.zeros(len(rounds))]),
            np.concatenate([self.idle, np.zeros(len(rounds), dtype=np.int64)]),
        )


def no_cuts(entries: int) -> Cuts:
    """None, for points of so many entries."""
    none = np.zeros(0, dtype=np.int64)
    return Cuts(none, np.zeros((0, entries)), np.zeros(0), np.zeros((0, 0)), np.zeros(0), none)


def slopes_at(task: PenaltyTask, x: Floats, rounds: Int64s) -> Floats:
    """Subgradients of these rounds at x, one flat row each, as they come: not yet within the
    directions of aff(K).
    """
    gradients = to_numpy(task.constraints.gradients(x)).reshape(len(task.constraints), -1)
    return np.asarray(gradients[rounds], dtype=np.float64)


def within_hull(task: PenaltyTask, slopes: Floats) -> Floats:
    """Flat rows within the directions of aff(K)."""
    if task.K.dimension == slopes.shape[1]:
        return slopes
    rows = [to_numpy(task.K.tangent(row.reshape(task.y.shape))).reshape(-1) for row in slopes]
    return np.array(rows).reshape(slopes.shape)
