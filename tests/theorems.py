"""Learners with the paper's constants, without the warnings that short horizons deserve."""

from __future__ import annotations

import warnings
from typing import Any

from tidewolf import BanditPrimalDual, DriftPlusPenalty, PrimalDual
from tidewolf.core.errors import ShortHorizon
from tidewolf.methods.steps.thresholds import explorable_from

SLOPES = ("loss_lipschitz", "constraint_lipschitz")
SIZES = (*SLOPES, "loss_size", "constraint_size")


def drift_plus_penalty(K: Any, horizon: int, *slopes: float, **given: Any) -> DriftPlusPenalty:
    return _quietly(DriftPlusPenalty, K, horizon, zip(SLOPES, slopes, strict=True), given)


def primal_dual(K: Any, horizon: int, *slopes: float, **given: Any) -> PrimalDual:
    return _quietly(PrimalDual, K, horizon, zip(SLOPES, slopes, strict=True), given)


def bandit_primal_dual(K: Any, horizon: int, *sizes: float, **given: Any) -> BanditPrimalDual:
    return _quietly(BanditPrimalDual, K, horizon, zip(SIZES, sizes, strict=True), given)


def examples(kind: Any, K: Any, horizon: int) -> tuple[Any, Any]:
    """Two worth testing on a set; the second starts where it is told to."""
    if kind is BanditPrimalDual:
        least = explorable_from(K.inner_radius, K.dimension) if K.inner_radius else 1
        sizes, first, second = (1e6,) * 4, max(horizon, least), max(horizon // 3, least)
        return (
            bandit_primal_dual(K, first, *sizes),
            bandit_primal_dual(K, second, *sizes, start=K.center, seed=1),
        )
    make = primal_dual if kind is PrimalDual else drift_plus_penalty
    return make(K, horizon, 1e3, 1e3), make(K, max(1, horizon // 3), 1e3, 1e3, start=K.center)


def _quietly(kind: Any, K: Any, horizon: int, sizes: Any, given: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizon)
        return kind.theorem(K, horizon=horizon, **dict(sizes), **given)
