"""Laws that every batch of convex functions keeps; run them on your own with `check_function`.

    f_t(s x + (1 - s) z) <= s f_t(x) + (1 - s) f_t(z)             convex
    f_t(z) >= f_t(x) + <grad f_t(x), z - x>                       subgradients
    subgradient(x, w) = sum_t w_t grad f_t(x)                     weighted sums
    gradients(x)_t = grad f_t(x)
    slopes(x)_t = ||grad f_t(x)||
    values_at(x_1 .. x_k)_t = f_t(x_t)                            rounds at points of their own
    exp(-alpha f_t) is concave                                    for a declared exp_concavity alpha

and: sizes agree, views agree with the whole, the same question gets the same answer, in the library
and dtype it was asked in, and nothing given is changed. Floats are compared up to sqrt(eps) of the
largest terms that went into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from functools import cached_property

import numpy as np

from tidewolf.core.arguments import as_items
from tidewolf.core.arrays import as_point, eps_of, is_array, like, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import CheckFailed, InvalidInput, NotSupported, WrongType
from tidewolf.core.randomness import generator
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.functions.base import LinearTotal, PiecewiseLinear
from tidewolf.functions.chain import chained
from tidewolf.testing.checks import (
    OnPass,
    as_floats,
    check,
    format_point,
    require,
    require_equality_of,
    run_checks,
)

_LOOKED_AT = 16
"""How many rounds of a long batch have their gradients looked at one by one."""


def check_function(
    f: Batch, *, seed: int = 0, points: Sequence[Array] | None = None, on_pass: OnPass | None = None
) -> None:
    """Try every law of functions on a batch of them.

    Parameters
    ----------
    f : Batch
        The functions, such as an instance of a class of your own, at least one round of them.
    seed : int, default 0
        Where the random points start.
    points : sequence of array, optional
        At least two points, which and whose mixtures are tried; functions with a `domain` need
        them, and so does an `exp_concavity` that holds on a bounded set only. None: random points.
    on_pass : callable, optional
        Told the name of every law that is kept, as it is tried.

    Raises
    ------
    CheckFailed
        At the first law that is broken, with the law and the numbers.
    InvalidInput
        Where there is no round, or no points of the domain are given.

    Examples
    --------
    >>> tw.testing.check_function(tw.functions.Linear([[1.0, 2.0], [0.0, 3.0]]))
    >>> cave = tw.functions.Custom.one(lambda x: -float(x @ x), lambda x: -2 * x, 2)
    >>> try:
    ...     tw.testing.check_function(cave)
    ... except AssertionError as broken:
    ...     print(str(broken)[:51])
    Custom breaks the law that every round is convex: i
    """
    if not isinstance(f, Batch):
        raise WrongType(
            "check_function takes a batch of functions, an instance of a subclass of Batch, not "
            f"{f!r}."
        )
    if len(f) == 0:
        raise InvalidInput(f"check_function needs a batch with at least one round; {f!r} has none.")
    if type(f).fields is Batch.fields and not is_dataclass(f):
        raise CheckFailed(
            f"{type(f).__name__} has no settings to print and compare: make it a dataclass, or "
            "define fields()."
        )
    trial = FunctionTrial(f, _points(f, seed, points), seed)
    run_checks(FUNCTION_CHECKS, trial, type(f).__name__, on_pass)


@dataclass(frozen=True)
class FunctionTrial:
    """A batch, the points it is tried at, and what it answers there in float64."""

    f: Batch
    xs: tuple[Array, ...]
    seed: int

    def weights(self, purpose: str = "weights") -> Floats:
        """Random positive weights, one a round."""
        return generator(self.seed, purpose).uniform(0.5, 2.0, len(self.f))

    def weighted(self, x: Array, weights: Floats) -> Floats:
        """The subgradient at x under these weights, flattened."""
        return _numbers(self.f.subgradient(x, like(weights, x)))

    @cached_property
    def looked_at(self) -> Int64s:
        """The rounds whose gradients are looked at one by one."""
        return np.sort(generator(self.seed, "rounds").permutation(len(self.f))[:_LOOKED_AT])

    @cached_property
    def flat(self) -> Floats:
        """The points as rows."""
        return np.array([_numbers(x) for x in self.xs])

    @cached_property
    def values(self) -> Floats:
        """values[i, t] = f_t(x_i)."""
        return np.array([_numbers(self.f.values(x)) for x in self.xs])

    @cached_property
    def gradients(self) -> Floats:
        """gradients[i, j] = grad f_t(x_i), flattened, for the j-th round t looked at."""
        units = self.looked_at[:, None] == np.arange(len(self.f))
        return np.array(
            [[self.weighted(x, unit.astype(np.float64)) for unit in units] for x in self.xs]
        )

    @cached_property
    def tolerance(self) -> float:
        """sqrt(eps) of the largest value and product <gradient, point>."""
        steepest = float(np.linalg.norm(self.gradients, axis=2).max())
        farthest = float(np.linalg.norm(self.flat, axis=1).max())
        return float(
            eps_of(self.xs[0]) ** 0.5 * (np.abs(self.values).max() + steepest * max(1.0, farthest))
        )


@check("it prints and compares as what it is")
def function_prints_and_compares(trial: FunctionTrial) -> None:
    f = trial.f
    require(repr(f).startswith(type(f).__name__), f"its repr is {f!r}")
    require_equality_of(f, Batch)
    require(f == f[:], "f[:] is not equal to f")
    require(f != f[:0], "f[:0] is equal to f")


@check("answers have the size, library and dtype of the question and are finite")
def answers_fit(trial: FunctionTrial) -> None:
    f = trial.f
    for x in trial.xs:
        subgradient = f.subgradient(x, like(trial.weights(), x))
        asked = (
            ("values", f.values(x), (len(f),)),
            ("subgradient", subgradient, f.shape),
            ("gradients", f.gradients(x), (len(f), *f.shape)),
        )
        for name, got, shape in asked:
            require(
                type(got) is type(x),
                f"{name} answers a {type(got).__name__} for a {type(x).__name__}",
            )
            require(
                tuple(got.shape) == shape, f"{name} answers shape {tuple(got.shape)}, not {shape}"
            )
            require(got.dtype == x.dtype, f"{name} answers dtype {got.dtype} for {x.dtype}")
            require(
                np.isfinite(_numbers(got)).all(), f"{name} answers {_numbers(got)} at {_numbers(x)}"
            )
        slopes = f.slopes(x)
        require(
            type(slopes) is np.ndarray and slopes.shape == (len(f),),
            f"slopes answers {slopes!r} for {len(f)} rounds",
        )


@check("rounds taken apart and joined are the same functions")
def rounds_can_be_joined(trial: FunctionTrial) -> None:
    f, x = trial.f, trial.xs[0]
    whole = chained([f[t : t + 1] for t in range(len(f))])
    require(
        len(whole) == len(f) and whole.shape == f.shape, f"{len(whole)} rounds came of {len(f)}"
    )
    for what, ours, theirs in (
        ("values", whole.values(x), f.values(x)),
        ("gradients", whole.gradients(x), f.gradients(x)),
    ):
        close = np.allclose(
            _numbers(ours),
            _numbers(theirs),
            rtol=1e-5,
            atol=1e-5 * (1.0 + float(np.abs(_numbers(theirs)).max())),
        )
        require(close, f"their {what} differ")


@check("what it is given stays unchanged")
def points_stay_unchanged(trial: FunctionTrial) -> None:
    f, x = trial.f, trial.xs[0]
    mine, weights = like(_numbers(x).reshape(f.shape).copy(), x), like(trial.weights(), x)
    held = {
        "the point": mine,
        "the weights": weights,
        **{f"its {name}": part for name, part in f.fields().items() if is_array(part)},
    }
    before = {name: to_numpy(part).copy() for name, part in held.items()}
    (
        f.values(mine),
        f.subgradient(mine, weights),
        f.gradients(mine),
        f.slopes(mine),
        f.values_at(namespace(mine).stack([mine] * len(f))),
    )
    for name, part in held.items():
        require(
            np.array_equal(to_numpy(part), before[name]), f"{name} changed while it was only asked"
        )


@check("the same question gets the same answer")
def same_point_same_values(trial: FunctionTrial) -> None:
    f, x = trial.f, trial.xs[-1]
    w = trial.weights()
    require(
        np.array_equal(_numbers(f.values(x)), _numbers(f.values(x))),
        "values differ between two calls",
    )
    require(
        np.array_equal(trial.weighted(x, w), trial.weighted(x, w)),
        "subgradients differ between two calls",
    )
    require(np.array_equal(f.slopes(x), f.slopes(x)), "slopes differ between two calls")


@check("f[s:e] is rounds s to e of f")
def views_agree(trial: FunctionTrial) -> None:
    f, k = trial.f, len(trial.f)
    for s, e in {(0, k), (0, 0), (0, 1), (k - 1, k), (k // 2, k), (k // 3, k - k // 3)}:
        part, rounds = f[s:][: e - s], f"f[{s}:][:{e - s}]"
        require(len(part) == e - s, f"{rounds} has {len(part)} rounds")
        require(
            part.shape == f.shape,
            f"{rounds} takes points of shape {part.shape}, f of shape {f.shape}",
        )
        for x, values in zip(trial.xs, trial.values, strict=True):
            w = np.where((np.arange(k) >= s) & (np.arange(k) < e), trial.weights(), 0.0)
            gaps = {
                "values": _numbers(part.values(x)) - values[s:e],
                "slopes": part.slopes(x) - f.slopes(x)[s:e],
                "subgradient": (
                    (_numbers(part.subgradient(x, like(w[s:e], x))) - trial.weighted(x, w))
                    / max(1, e - s)
                ),
            }
            for name, gap in gaps.items():
                off = float(np.abs(gap).max(initial=0.0))
                require(off <= trial.tolerance, f"{name} of {rounds} is off by {off:.3g}")


@check("values_at(points) is each round's value at its own point")
def rounds_have_points_of_their_own(trial: FunctionTrial) -> None:
    f, pick = trial.f, generator(trial.seed, "points of their own")
    for _ in range(3):
        chosen = pick.integers(0, len(trial.xs), len(f))
        points = namespace(trial.xs[0]).stack([trial.xs[i] for i in chosen])
        got = f.values_at(points)
        require(
            type(got) is type(points) and got.dtype == points.dtype,
            f"it answers a {type(got).__name__} of {got.dtype}",
        )
        require(
            tuple(got.shape) == (len(f),), f"it answers shape {tuple(got.shape)}, not {(len(f),)}"
        )
        off = float(np.abs(_numbers(got) - trial.values[chosen, np.arange(len(f))]).max())
        require(off <= trial.tolerance, f"it is off by {off:.3g}")


@check("every round is convex")
def convex(trial: FunctionTrial) -> None:
    rng = generator(trial.seed, "segments")
    for i, x in enumerate(trial.xs):
        for j, z in enumerate(trial.xs[:i]):
            s = float(rng.uniform(0.1, 0.9))
            between = _numbers(trial.f.values(s * x + (1 - s) * z))
            chord = s * trial.values[i] + (1 - s) * trial.values[j]
            t = int(np.argmax(between - chord))
            require(
                between[t] <= chord[t] + trial.tolerance,
                f"in round {t}, between {trial.flat[j]} and {trial.flat[i]}, it is "
                f"{between[t]:.6g} where the chord is {chord[t]:.6g}",
            )


@check("f_t(z) >= f_t(x) + <grad f_t(x), z - x>")
def subgradients_support(trial: FunctionTrial) -> None:
    for i, x in enumerate(trial.flat):
        support = trial.values[i, trial.looked_at] + (trial.flat - x) @ trial.gradients[i].T
        above = support - trial.values[:, trial.looked_at]
        j, t = np.unravel_index(int(np.argmax(above)), above.shape)
        require(
            above[j, t] <= trial.tolerance,
            f"in round {trial.looked_at[t]}, x = {x}, z = {trial.flat[j]}, the right side is "
            f"larger by {above[j, t]:.3g}",
        )


@check("pieces are at most the round's value, the largest equal, and piece_gradients are theirs")
def limits_have_gradients(trial: FunctionTrial) -> None:
    f, x = trial.f, trial.xs[-1]
    if f.pieces(x) is None:
        return
    tables = np.array([as_floats(f.pieces(z)) for z in trial.xs])
    off = float(np.abs(tables.max(axis=2) - trial.values).max())
    require(off <= trial.tolerance, f"the largest piece of a round is {off:.3g} off its value")
    rounds, limits = (each.reshape(-1) for each in np.indices(tables[-1].shape))
    try:
        gradients = as_floats(f.piece_gradients(x, rounds, limits)).reshape(len(rounds), -1)
    except NotSupported:
        return
    least = tables[-1].reshape(-1) + (trial.flat - trial.flat[-1]) @ gradients.T
    over = float((least - tables.reshape(len(tables), -1)).max())
    slack = trial.tolerance * (1.0 + float(np.abs(gradients).max(initial=0.0)))
    require(over <= slack, f"from {format_point(x)} a limit is {over:.3g} below its gradient")


@check("subgradient(x, w) is the weighted sum of the rounds' subgradients")
def weights_add_up(trial: FunctionTrial) -> None:
    w, u, k = trial.weights(), trial.weights("more weights"), len(trial.f)
    some = np.where(np.isin(np.arange(k), trial.looked_at), w, 0.0)
    for x, gradients in zip(trial.xs, trial.gradients, strict=True):
        require(not trial.weighted(x, np.zeros(k)).any(), "weights of zero do not give zero")
        one_by_one = np.abs(trial.weighted(x, some) - some[trial.looked_at] @ gradients).max() / k
        require(
            one_by_one <= trial.tolerance,
            f"it differs from the sum, one round at a time, by {k * one_by_one:.3g}",
        )
        linear = (
            np.abs(
                trial.weighted(x, w + 2 * u) - trial.weighted(x, w) - 2 * trial.weighted(x, u)
            ).max()
            / k
        )
        require(
            linear <= trial.tolerance,
            f"under w + 2 u it is off by {k * linear:.3g} from that under w and twice that under u",
        )


@check("gradients are the rounds' subgradients, those that subgradient weighs")
def gradients_are_the_rounds(trial: FunctionTrial) -> None:
    w, k = trial.weights(), len(trial.f)
    for x in trial.xs:
        gradients = _numbers(trial.f.gradients(x)).reshape(k, -1)
        off = float(np.abs(w @ gradients - trial.weighted(x, w)).max()) / k
        require(off <= trial.tolerance, f"under the same weights they differ by {k * off:.3g}")


@check("slopes are the norms of the rounds' subgradients")
def slopes_are_norms(trial: FunctionTrial) -> None:
    for x, gradients in zip(trial.xs, trial.gradients, strict=True):
        slopes, norms = trial.f.slopes(x)[trial.looked_at], np.linalg.norm(gradients, axis=1)
        t = int(np.argmax(np.abs(slopes - norms)))
        require(
            abs(slopes[t] - norms[t]) <= trial.tolerance,
            f"in round {trial.looked_at[t]} the slope is {slopes[t]:.6g} and the norm "
            f"{norms[t]:.6g}",
        )


@check("exp(-exp_concavity f_t) is concave")
def exp_concave(trial: FunctionTrial) -> None:
    alpha, rng = trial.f.exp_concavity, generator(trial.seed, "segments")
    if alpha is None:
        return
    require(
        isinstance(alpha, float) and 0.0 < alpha < np.inf,
        f"exp_concavity is {alpha!r}, not a number above 0 or None",
    )
    for i, x in enumerate(trial.xs):
        for j, z in enumerate(trial.xs[:i]):
            s = float(rng.uniform(0.1, 0.9))
            between = _numbers(trial.f.values(s * x + (1 - s) * z))
            here, there = alpha * (between - trial.values[i]), alpha * (between - trial.values[j])
            # exp(-alpha f) on the chord over that between, in logarithms so that none is too large
            above = np.logaddexp(np.log(s) + here, np.log(1 - s) + there)
            t = int(np.argmax(above))
            require(
                above[t] <= alpha * trial.tolerance,
                f"with exp_concavity {alpha:g}, in round {t}, between {trial.flat[j]} and "
                f"{trial.flat[i]}, the chord is above it by a factor of {np.exp(above[t]):.6g}",
            )


@check("total() is the sum over the rounds")
def total_is_the_sum(trial: FunctionTrial) -> None:
    f = trial.f
    if isinstance(f, LinearTotal):
        c, constant = f.total()
        require(
            c.shape == f.shape and c.dtype == np.float64,
            f"c has shape {c.shape} and dtype {c.dtype}",
        )
        gap = float(np.abs(trial.flat @ c.reshape(-1) + constant - trial.values.sum(axis=1)).max())
        require(gap <= trial.tolerance * len(f), f"they differ by {gap:.3g}")


@check(
    "halfspaces() hold where every value is at most 0, row by row below the round they come from"
)
def halfspaces_say_the_same(trial: FunctionTrial) -> None:
    f = trial.f
    if not isinstance(f, PiecewiseLinear):
        return
    A, b, rounds = f.halfspaces()
    require(
        A.shape == (len(b), trial.flat.shape[1]) and len(rounds) == len(b),
        f"A has shape {A.shape} beside {len(b)} offsets",
    )
    tolerance = trial.tolerance + eps_of(trial.xs[0]) ** 0.5 * float(np.abs(b).max())
    for x, values in zip(trial.flat, trial.values, strict=True):
        pieces = A @ x - b
        above = float((pieces - values[rounds]).max())
        require(above <= tolerance, f"a row is above the value of its round by {above:.3g} at {x}")
        worst, largest = float(values.max()), float(pieces.max())
        require(
            (worst > 0) == (largest > 0) or min(abs(worst), abs(largest)) <= tolerance,
            f"at {x} the largest value is {worst:.6g} and the largest row {largest:.6g}",
        )


@check("epigraph() has the pieces of every round, and their largest is its value")
def epigraph_says_the_same(trial: FunctionTrial) -> None:
    f = trial.f
    if not isinstance(f, PiecewiseLinear):
        return
    A, b, rounds = f.epigraph()
    require(
        bool((np.diff(rounds) >= 0).all()) and len(rounds) == A.shape[0] == len(b),
        "its rows are not in the order of the rounds",
    )
    tolerance = trial.tolerance + eps_of(trial.xs[0]) ** 0.5 * float(np.abs(b).max())
    for x, values in zip(trial.flat, trial.values, strict=True):
        largest = np.full(len(f), -np.inf)
        np.maximum.at(largest, rounds, A @ x - b)
        off = float(np.abs(largest - values).max())
        require(off <= tolerance, f"at {x} the largest piece of a round is off by {off:.3g}")


FUNCTION_CHECKS = (
    function_prints_and_compares,
    answers_fit,
    points_stay_unchanged,
    same_point_same_values,
    views_agree,
    rounds_have_points_of_their_own,
    convex,
    exp_concave,
    subgradients_support,
    weights_add_up,
    gradients_are_the_rounds,
    slopes_are_norms,
    limits_have_gradients,
    total_is_the_sum,
    halfspaces_say_the_same,
    epigraph_says_the_same,
    rounds_can_be_joined,
)
"""Every law, in the order they are tried: what later laws build on comes first."""


def _points(f: Batch, seed: int, points: Sequence[Array] | None) -> tuple[Array, ...]:
    """Where to try: near and far from zero, at ties, and mixtures of what is given."""
    rng = generator(seed, "points")
    if points is None:
        if f.domain is not None:
            raise InvalidInput(
                f"{type(f).__name__} is defined on {f.domain} only; give check_function at least "
                "two points there."
            )
        reference = next((part for part in f.fields().values() if is_array(part)), np.empty(0))
        spread = [
            scale * rng.standard_normal(f.shape) for scale in (0.1, 0.1, 1.0, 1.0, 10.0, 10.0)
        ]
        return tuple(like(x, reference) for x in (np.zeros(f.shape), np.ones(f.shape), *spread))
    listed = as_items(points, "The points for check_function", "[np.zeros(3), np.ones(3)]")
    given = [as_point(x, f.shape, "A point for check_function") for x in listed]
    if len(given) < 2:
        raise InvalidInput("check_function needs at least two points to look between.")
    shares = [rng.dirichlet(np.ones(len(given))) for _ in range(6)]
    mixtures = [sum(float(s) * x for s, x in zip(share, given, strict=True)) for share in shares]
    return (*given, *mixtures)


def _numbers(x: Array) -> Floats:
    """An array as a vector of float64 on the host."""
    return as_floats(x).reshape(-1)
