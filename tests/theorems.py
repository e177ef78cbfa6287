"""Learners with the paper's constants, without the warnings that short horizons deserve."""

import warnings

import numpy as np

import streams
import tidewolf as tw
from tidewolf.core.errors import ShortHorizon
from tidewolf.functions import Affine, Linear
from tidewolf.learners.bandit_primal_dual import explorable_from
from tidewolf.sets import Box, CappedSimplex, FlowPolytope, L2Ball, Simplex, VertexHull

SLOPES = ("loss_lipschitz", "constraint_lipschitz")
SIZES = (*SLOPES, "loss_size", "constraint_size")
DIAMOND = FlowPolytope.examples()[0]
HULL = VertexHull(np.random.default_rng(0).standard_normal((9, 3)))
POINT = VertexHull(np.ones((1, 2)))
SETS = [
    *(Simplex(4), DIAMOND, CappedSimplex(6, 0.5), Box([-1.0, 0.0], [1.0, 3.0]), HULL),
    *(L2Ball((2, 2), 3.0), Simplex(1), POINT, Box([-1.0, 0.0, 2.0], [1.0, 3.0, 2.0]), L2Ball(1)),
]


def drift_plus_penalty(K, horizon, *slopes, **given):
    return _quietly(tw.DriftPlusPenalty, K, horizon, zip(SLOPES, slopes, strict=True), given)


def primal_dual(K, horizon, *slopes, **given):
    return _quietly(tw.PrimalDual, K, horizon, zip(SLOPES, slopes, strict=True), given)


def bandit_primal_dual(K, horizon, *sizes, **given):
    return _quietly(tw.BanditPrimalDual, K, horizon, zip(SIZES, sizes, strict=True), given)


def examples(kind, K, horizon):
    """Two worth testing on a set; the second starts where it is told to."""
    if kind is tw.BanditPrimalDual:
        least = explorable_from(K.inner_radius, K.dimension) if K.inner_radius else 1
        sizes, first, second = (1e6,) * 4, max(horizon, least), max(horizon // 3, least)
        later = bandit_primal_dual(K, second, *sizes, start=K.center, seed=1)
        return bandit_primal_dual(K, first, *sizes), later
    make = primal_dual if kind is tw.PrimalDual else drift_plus_penalty
    return make(K, horizon, 1e3, 1e3), make(K, max(1, horizon // 3), 1e3, 1e3, start=K.center)


def _quietly(kind, K, horizon, sizes, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizon)
        return kind.theorem(K, horizon=horizon, **dict(sizes), **given)


def hostile(K, rounds, seed):
    """Losses that turn round and constraints that oppose them, all kept by one point of K; slopes
    of at most 1.
    """
    switching = streams.hostile("switching", K, rounds, seed)
    C, A, b = switching.losses.C, switching.constraints.A, switching.constraints.b
    of_C, of_A = (np.linalg.norm(M.reshape(rounds, -1), axis=1) for M in (C, A))
    return tw.Stream(Linear((C.T / of_C).T), Affine((A.T / of_A).T, b / of_A))
