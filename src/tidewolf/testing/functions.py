"""Properties of every batch of convex functions; test your own with `check_function`.

    f_t(s x + (1 - s) z) <= s f_t(x) + (1 - s) f_t(z)             convex
    f_t(z) >= f_t(x) + <grad f_t(x), z - x>                       subgradients
    subgradient(x, w) = sum_t w_t grad f_t(x)                     weighted sums
    gradients(x)_t = grad f_t(x)
    slopes(x)_t = ||grad f_t(x)||
    values_at(x_1 .. x_k)_t = f_t(x_t)                            a point for each round
    exp(-alpha f_t) is concave                                    for a declared exp_concavity alpha

Also: sizes agree, and views agree with the whole. The same question gets the same answer, in the
library and dtype of the question. Nothing given is changed. Floats are compared up to sqrt(eps) of
the largest terms that went into them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from tidewolf.functions.combined import chained
from tidewolf.testing.checks import (
    Checks,
    OnPass,
    as_floats,
    format_point,
    require,
    require_array,
    require_at_most,
    require_close,
    require_equality_of,
)

_LOOKED_AT = 16
"""How many rounds of a long batch have their gradients tested one by one."""


def check_function(
    f: Batch, *, seed: int = 0, points: Sequence[Array] | None = None, on_pass: OnPass | None = None
) -> None:
    """Run every check of functions on a batch of them.

    Parameters
    ----------
    f : Batch
        The functions, such as an instance of a class of your own, at least one round of them.
    seed : int, default 0
        Seed of the random points.
    points : sequence of array, optional
        At least two points, which are tested with their mixtures; functions with a `domain` need
        them, and so does an `exp_concavity` that holds on a bounded set only. None: random points.
    on_pass : callable, optional
        Called with the name of every check that passes.

    Raises
    ------
    CheckFailed
        At the first check that fails, with the property and the numbers.
    InvalidInput
        If there is no round, or if no points of the domain are given.

    Examples
    --------
    >>> tw.testing.check_function(tw.functions.Linear([[1.0, 2.0], [0.0, 3.0]]))
    >>> cave = tw.functions.Custom.one(lambda x: -float(x @ x), lambda x: -2 * x, 2)
    >>> try:
    ...     tw.testing.check_function(cave)
    ... except AssertionError as failed:
    ...     print(str(failed)[:49])
    Custom fails the check that every round is convex
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
    FUNCTION_CHECKS.run(trial, type(f).__name__, on_pass)


@dataclass(frozen=True)
class FunctionTrial:
    """A batch, the points it is tested at, and its answers there in float64."""

    f: Batch
    xs: tuple[Array, ...]
    seed: int

    def weights(self, purpose: str = "weights") -> Floats:
        """Random positive weights, one per round."""
        return generator(self.seed, purpose).uniform(0.5, 2.0, len(self.f))

    def weighted(self, x: Array, weights: Floats) -> Floats:
        """The subgradient at x under these weights, flattened."""
        return _numbers(self.f.subgradient(x, like(weights, x)))

    def between(self) -> Iterator[tuple[float, int, int, Floats]]:
        """Every two points i, j with a share s, and the values at s x_i + (1 - s) x_j."""
        rng = generator(self.seed, "segments")
        for i, x in enumerate(self.xs):
            for j, z in enumerate(self.xs[:i]):
                s = float(rng.uniform(0.1, 0.9))
                yield s, i, j, _numbers(self.f.values(s * x + (1 - s) * z))

    @cached_property
    def looked_at(self) -> Int64s:
        """The rounds whose gradients are tested one by one."""
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
        units = (self.looked_at[:, None] == np.arange(len(self.f))).astype(np.float64)
        return np.array([[self.weighted(x, unit) for unit in units] for x in self.xs])

    @cached_property
    def tolerance(self) -> float:
        """sqrt(eps) of the largest value and product <gradient, point>."""
        steepest = float(np.linalg.norm(self.gradients, axis=2).max())
        farthest = float(np.linalg.norm(self.flat, axis=1).max())
        largest = float(np.abs(self.values).max()) + steepest * max(1.0, farthest)
        return float(eps_of(self.xs[0]) ** 0.5 * largest)


FUNCTION_CHECKS = Checks[FunctionTrial]()


@FUNCTION_CHECKS("it prints its name and compares by content")
def function_prints_and_compares(trial: FunctionTrial) -> None:
    f = trial.f
    require_equality_of(f, Batch)
    require(f == f[:], "f[:] is not equal to f")
    require(f != f[:0], "f[:0] is equal to f")


@FUNCTION_CHECKS("answers have the size, library and dtype of the question and are finite")
def answers_fit(trial: FunctionTrial) -> None:
    f, k = trial.f, len(trial.f)
    for x in trial.xs:
        for name, found, shape in (
            ("values", f.values(x), (k,)),
            ("subgradient", f.subgradient(x, like(trial.weights(), x)), f.shape),
            ("gradients", f.gradients(x), (k, *f.shape)),
            ("values_at", f.values_at(namespace(x).stack([x] * k)), (k,)),
        ):
            require_array(found, shape, x, name)
            finite = np.isfinite(_numbers(found)).all()
            require(finite, f"{name} is {format_point(found)} at {format_point(x)}")
        slopes = f.slopes(x)
        require_array(slopes, (k,), np.asarray(slopes), "slopes")


@FUNCTION_CHECKS("what it is given stays unchanged, and the same question gets the same answer")
def points_stay_unchanged(trial: FunctionTrial) -> None:
    f, x = trial.f, trial.xs[-1]
    mine, weights = like(as_floats(x).copy(), x), like(trial.weights(), x)
    held = {"the point": mine, "the weights": weights}
    held |= {f"its {name}": part for name, part in f.fields().items() if is_array(part)}
    before = {name: to_numpy(part).copy() for name, part in held.items()}
    first, again = (
        {
            "values": f.values(mine),
            "subgradients": f.subgradient(mine, weights),
            "gradients": f.gradients(mine),
            "slopes": f.slopes(mine),
            "values_at": f.values_at(namespace(mine).stack([mine] * len(f))),
        }
        for _ in range(2)
    )
    for name, part in held.items():
        require(np.array_equal(to_numpy(part), before[name]), f"a call changed {name}")
    for name, answer in first.items():
        same = np.array_equal(_numbers(answer), _numbers(again[name]))
        require(same, f"{name} differ between two calls")


@FUNCTION_CHECKS("f[s:e] is rounds s to e of f")
def views_agree(trial: FunctionTrial) -> None:
    f, k = trial.f, len(trial.f)
    for s, e in {(0, k), (0, 0), (0, 1), (k - 1, k), (k // 2, k), (k // 3, k - k // 3)}:
        part, of = f[s:][: e - s], f"of f[{s}:][:{e - s}]"
        sizes = (len(part), part.shape)
        require(sizes == (e - s, f.shape), f"the number of rounds and shape {of} are {sizes}")
        for x, values in zip(trial.xs, trial.values, strict=True):
            w = np.where((np.arange(k) >= s) & (np.arange(k) < e), trial.weights(), 0.0)
            sums = _numbers(part.subgradient(x, like(w[s:e], x))) - trial.weighted(x, w)
            require_close(_numbers(part.values(x)), values[s:e], trial.tolerance, f"values {of}")
            require_close(part.slopes(x), f.slopes(x)[s:e], trial.tolerance, f"slopes {of}")
            require_close(sums, 0.0, max(1, e - s) * trial.tolerance, f"subgradient {of}")


@FUNCTION_CHECKS("values_at(points) is each round's value at its own point")
def rounds_have_points_of_their_own(trial: FunctionTrial) -> None:
    f, pick = trial.f, generator(trial.seed, "points of their own")
    for _ in range(3):
        chosen = pick.integers(0, len(trial.xs), len(f))
        points = namespace(trial.xs[0]).stack([trial.xs[i] for i in chosen])
        expected = trial.values[chosen, np.arange(len(f))]
        require_close(_numbers(f.values_at(points)), expected, trial.tolerance, "it")


@FUNCTION_CHECKS("every round is convex")
def convex(trial: FunctionTrial) -> None:
    for s, i, j, between in trial.between():
        chord = s * trial.values[i] + (1 - s) * trial.values[j]
        t = int(np.argmax(between - chord))
        ends = f"{format_point(trial.xs[j])} and {format_point(trial.xs[i])}"
        require_at_most(
            between[t], chord[t] + trial.tolerance, f"in round {t}, the value between {ends}"
        )


@FUNCTION_CHECKS("exp(-exp_concavity f_t) is concave")
def exp_concave(trial: FunctionTrial) -> None:
    alpha = trial.f.exp_concavity
    if alpha is None:
        return
    valid = isinstance(alpha, float) and 0.0 < alpha < np.inf
    require(valid, f"exp_concavity is {alpha!r}, expected a number above 0 or None")
    for s, i, j, between in trial.between():
        here, there = alpha * (between - trial.values[i]), alpha * (between - trial.values[j])
        # exp(-alpha f) on the chord over that between, in logarithms so that none is too large
        above = np.logaddexp(np.log(s) + here, np.log(1 - s) + there)
        t = int(np.argmax(above))
        require(
            above[t] <= alpha * trial.tolerance,
            f"with exp_concavity {alpha:g}, in round {t}, between {format_point(trial.xs[j])} and "
            f"{format_point(trial.xs[i])}, the chord is above it by a factor of "
            f"{np.exp(above[t]):.6g}",
        )


@FUNCTION_CHECKS("f_t(z) >= f_t(x) + <grad f_t(x), z - x>")
def subgradients_support(trial: FunctionTrial) -> None:
    for i, x in enumerate(trial.flat):
        support = trial.values[i, trial.looked_at] + (trial.flat - x) @ trial.gradients[i].T
        above = support - trial.values[:, trial.looked_at]
        j, t = np.unravel_index(int(np.argmax(above)), above.shape)
        at = f"x = {format_point(x)}, z = {format_point(trial.flat[j])}"
        what = f"in round {trial.looked_at[t]}, {at}, how much larger the right side"
        require_at_most(above[j, t], trial.tolerance, what)


@FUNCTION_CHECKS("subgradient(x, w) is the weighted sum of the rounds' subgradients")
def weights_add_up(trial: FunctionTrial) -> None:
    w, u, k = trial.weights(), trial.weights("more weights"), len(trial.f)
    some, room = np.where(np.isin(np.arange(k), trial.looked_at), w, 0.0), k * trial.tolerance
    for x, gradients in zip(trial.xs, trial.gradients, strict=True):
        require(not trial.weighted(x, np.zeros(k)).any(), "weights of zero do not give zero")
        one_by_one = some[trial.looked_at] @ gradients
        require_close(trial.weighted(x, some), one_by_one, room, "against one round at a time, it")
        apart = trial.weighted(x, w) + 2 * trial.weighted(x, u)
        require_close(trial.weighted(x, w + 2 * u), apart, room, "under w + 2 u, it")


@FUNCTION_CHECKS("gradients are the rounds' subgradients, and slopes the norms of them")
def gradients_are_the_rounds(trial: FunctionTrial) -> None:
    w, k = trial.weights(), len(trial.f)
    for x, looked_at in zip(trial.xs, trial.gradients, strict=True):
        gradients = _numbers(trial.f.gradients(x)).reshape(k, -1)
        sums = "the sum of gradients under the weights"
        require_close(w @ gradients, trial.weighted(x, w), k * trial.tolerance, sums)
        slopes, norms = trial.f.slopes(x)[trial.looked_at], np.linalg.norm(looked_at, axis=1)
        require_close(slopes, norms, trial.tolerance, "the slope of a round")


@FUNCTION_CHECKS(
    "pieces are at most the round's value, the largest equal, and piece_gradients are theirs"
)
def pieces_have_gradients(trial: FunctionTrial) -> None:
    f, x = trial.f, trial.xs[-1]
    if f.pieces(x) is None:
        return
    tables = np.array([as_floats(f.pieces(z)) for z in trial.xs])
    largest = "the largest piece of a round"
    require_close(tables.max(axis=2), trial.values, trial.tolerance, largest)
    rounds, pieces = (each.reshape(-1) for each in np.indices(tables[-1].shape))
    try:
        gradients = as_floats(f.piece_gradients(x, rounds, pieces)).reshape(len(rounds), -1)
    except NotSupported:
        return
    least = tables[-1].reshape(-1) + (trial.flat - trial.flat[-1]) @ gradients.T
    over = float((least - tables.reshape(len(tables), -1)).max())
    slack = trial.tolerance * (1.0 + float(np.abs(gradients).max(initial=0.0)))
    require_at_most(over, slack, f"how far a piece is below its gradient at {format_point(x)}")


@FUNCTION_CHECKS("total() is the sum over the rounds")
def total_is_the_sum(trial: FunctionTrial) -> None:
    f = trial.f
    if isinstance(f, LinearTotal):
        c, constant = f.total()
        require_array(c, f.shape, np.zeros(0), "c")
        total = trial.flat @ c.reshape(-1) + constant
        require_close(total, trial.values.sum(axis=1), trial.tolerance * len(f), "it")


@FUNCTION_CHECKS(
    "halfspaces() state that every value is at most 0, and epigraph() the value of each round"
)
def halfspaces_say_the_same(trial: FunctionTrial) -> None:
    f = trial.f
    if not isinstance(f, PiecewiseLinear):
        return
    for name, (A, b, rounds) in (("halfspaces", f.halfspaces()), ("epigraph", f.epigraph())):
        sizes = (*A.shape, len(rounds))
        expected = (len(b), trial.flat.shape[1], len(b))
        require(sizes == expected, f"the rows, entries and rounds of {name} are {sizes}")
        tolerance = trial.tolerance + eps_of(trial.xs[0]) ** 0.5 * float(np.abs(b).max())
        for x, values in zip(trial.flat, trial.values, strict=True):
            at, pieces = f"at {format_point(x)}", A @ x - b
            above = f"{at}, how far a row of {name} is above the value of its round"
            require_at_most(float((pieces - values[rounds]).max()), tolerance, above)
            if name == "halfspaces":
                worst, most = float(values.max()), float(pieces.max())
                same = (worst > 0) == (most > 0) or min(abs(worst), abs(most)) <= tolerance
                require(
                    same, f"{at} the largest value is {worst:.6g} and the largest row {most:.6g}"
                )
                continue
            require(bool((np.diff(rounds) >= 0).all()), "the rows are not in the order of rounds")
            largest = np.full(len(f), -np.inf)
            np.maximum.at(largest, rounds, pieces)
            require_close(largest, values, tolerance, f"{at} the largest piece of a round")


@FUNCTION_CHECKS("rounds taken apart and joined are the same functions")
def rounds_can_be_joined(trial: FunctionTrial) -> None:
    f, x = trial.f, trial.xs[0]
    whole = chained([f[t : t + 1] for t in range(len(f))])
    same = len(whole) == len(f) and whole.shape == f.shape
    require(same, f"{len(whole)} rounds of shape {whole.shape} came of {len(f)} of {f.shape}")
    for what, ours, expected in (
        ("values", whole.values(x), f.values(x)),
        ("gradients", whole.gradients(x), f.gradients(x)),
    ):
        room = 1e-5 * (1.0 + float(np.abs(_numbers(expected)).max()))
        require_close(_numbers(ours), _numbers(expected), room, f"the {what} of the joined rounds")


def _points(f: Batch, seed: int, points: Sequence[Array] | None) -> tuple[Array, ...]:
    """Points near and far from zero, at ties; or the given ones and mixtures of them."""
    rng = generator(seed, "points")
    if points is None:
        if f.domain is not None:
            raise InvalidInput(
                f"{type(f).__name__} is defined on {f.domain} only; give check_function at least "
                "two points there."
            )
        reference = next((part for part in f.fields().values() if is_array(part)), np.empty(0))
        spread = [s * rng.standard_normal(f.shape) for s in (0.1, 0.1, 1.0, 1.0, 10.0, 10.0)]
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
