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

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cached_property

import numpy as np

from tidewolf.core import arguments, batch
from tidewolf.core.arrays import as_point, eps_of, is_array, like, namespace, to_numpy
from tidewolf.core.errors import NotSupported, refuse
from tidewolf.core.randomness import generator
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.functions.combined import chained
from tidewolf.testing.checks import OnPass, as_floats, format_point, require, run_checks

# How many rounds of a long batch have their gradients tested one by one.
_LOOKED_AT = 16


def check_function(
    f: batch.Batch, *, seed: int = 0, points: Sequence[Array] | None = None, on_pass: OnPass = None
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
    such, name = "check_function takes an instance of a subclass of Batch", type(f).__name__
    arguments.as_kind(f, batch.Batch, such)
    refuse(len(f) == 0, f"check_function needs a batch with at least one round; {f!r} has none.")
    stated = type(f).fields is not batch.Batch.fields or is_dataclass(f)
    require(stated, f"{name} has no settings: make it a dataclass, or define fields()")
    run_checks(FunctionChecks(f, _points(f, seed, points), seed), name, on_pass)


@dataclass(frozen=True)
class FunctionTrial:
    f: batch.Batch
    xs: tuple[Array, ...]
    seed: int

    def weights(self, purpose: str = "weights") -> Floats:
        return generator(self.seed, purpose).uniform(0.5, 2.0, len(self.f))

    def weighted(self, x: Array, weights: Floats) -> Floats:
        return _numbers(self.f.subgradient(x, like(weights, x)))

    def between(self) -> Iterator[tuple[float, int, int, Floats, str]]:
        """Every two points i, j with a share s, the values at s x_i + (1 - s) x_j, and where."""
        rng = generator(self.seed, "segments")
        for j, i in itertools.combinations(range(len(self.xs)), 2):
            s, x, z = float(rng.uniform(0.1, 0.9)), self.xs[i], self.xs[j]
            where = f"between {format_point(z)} and {format_point(x)}"
            yield s, i, j, _numbers(self.f.values(s * x + (1 - s) * z)), where

    def answers(self, x: Array, weights: Array) -> dict[str, Array]:
        f, points = self.f, namespace(x).stack([x] * len(self.f))
        found = f.values(x), f.subgradient(x, weights), f.gradients(x), f.values_at(points)
        names = ("values", "subgradient", "gradients", "values_at", "slopes")
        return dict(zip(names, (*found, f.slopes(x)), strict=True))

    @cached_property
    def looked_at(self) -> Int64s:
        return np.sort(generator(self.seed, "rounds").permutation(len(self.f))[:_LOOKED_AT])

    @cached_property
    def flat(self) -> Floats:
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


def _points(f: batch.Batch, seed: int, points: Sequence[Array] | None) -> tuple[Array, ...]:
    rng, what = generator(seed, "points"), "The points for check_function"
    if points is None and f.domain is None:
        reference = next((part for part in f.fields().values() if is_array(part)), np.empty(0))
        spread = [s * rng.standard_normal(f.shape) for s in (0.1, 0.1, 1.0, 1.0, 10.0, 10.0)]
        return tuple(like(x, reference) for x in (np.zeros(f.shape), np.ones(f.shape), *spread))
    listed = arguments.as_items(() if points is None else points, what, "[[0.0], [1.0]]")
    given = [as_point(x, f.shape, what) for x in listed]
    refuse(len(given) < 2, f"check_function needs at least two {f.domain or 'points'}.")
    shares = [rng.dirichlet(np.ones(len(given))) for _ in range(6)]
    mixtures = [sum(float(s) * x for s, x in zip(share, given, strict=True)) for share in shares]
    return (*given, *mixtures)


def _numbers(x: Array) -> Floats:
    return as_floats(x).reshape(-1)


class FunctionChecks(FunctionTrial):
    def function_prints_and_compares(self) -> None:
        """It prints its name and compares by content."""
        f = self.f
        require.equality(f, batch.Batch)
        require(f == f[:], "f[:] is not equal to f")
        require(f != f[:0], "f[:0] is equal to f")

    def answers_fit(self) -> None:
        """Answers have the size, library and dtype of the question and are finite."""
        f, k = self.f, len(self.f)
        shapes = {"subgradient": f.shape, "gradients": (k, *f.shape)}
        for x in self.xs:
            for name, found in self.answers(x, like(self.weights(), x)).items():
                reference = np.asarray(found) if name == "slopes" else x
                require.array(found, shapes.get(name, (k,)), reference, name)
                finite = np.isfinite(_numbers(found)).all()
                require(finite, f"{name} is {format_point(found)} at {format_point(x)}")

    def points_stay_unchanged(self) -> None:
        """What it is given stays unchanged, and the same question gets the same answer."""
        x = self.xs[-1]
        mine, weights = like(as_floats(x).copy(), x), like(self.weights(), x)
        held = {f"its {name}": part for name, part in self.f.fields().items() if is_array(part)}
        held |= {"the point": mine, "the weights": weights}
        before = {name: to_numpy(part).copy() for name, part in held.items()}
        first, again = (self.answers(mine, weights) for _ in range(2))
        for name, part in held.items():
            require(np.array_equal(to_numpy(part), before[name]), f"a call changed {name}")
        for name, answer in first.items():
            same = np.array_equal(_numbers(answer), _numbers(again[name]))
            require(same, f"{name} differ between two calls")

    def views_agree(self) -> None:
        """f[s:e] is rounds s to e of f."""
        f, k, rounds = self.f, len(self.f), np.arange(len(self.f))
        for s, e in {(0, k), (0, 0), (0, 1), (k - 1, k), (k // 2, k), (k // 3, k - k // 3)}:
            part, of = f[s:][: e - s], f"of f[{s}:][:{e - s}]"
            sizes = (len(part), part.shape)
            require(sizes == (e - s, f.shape), f"the number of rounds and shape {of} are {sizes}")
            w, room = np.where((rounds >= s) & (rounds < e), self.weights(), 0.0), self.tolerance
            for x, values in zip(self.xs, self.values, strict=True):
                sums = _numbers(part.subgradient(x, like(w[s:e], x))) - self.weighted(x, w)
                require.close(_numbers(part.values(x)), values[s:e], room, f"values {of}")
                require.close(part.slopes(x), f.slopes(x)[s:e], room, f"slopes {of}")
                require.close(sums, 0.0, max(1, e - s) * room, f"subgradient {of}")

    def rounds_have_points_of_their_own(self) -> None:
        """values_at(points) is each round's value at its own point."""
        f, pick = self.f, generator(self.seed, "points of their own")
        for _ in range(3):
            chosen = pick.integers(0, len(self.xs), len(f))
            points = namespace(self.xs[0]).stack([self.xs[i] for i in chosen])
            expected = self.values[chosen, np.arange(len(f))]
            require.close(_numbers(f.values_at(points)), expected, self.tolerance, "it")

    def convex(self) -> None:
        """Every round is convex."""
        for s, i, j, between, where in self.between():
            chord = s * self.values[i] + (1 - s) * self.values[j]
            t = int(np.argmax(between - chord))
            require.at_most(
                between[t], chord[t] + self.tolerance, f"in round {t}, the value {where}"
            )

    def exp_concave(self) -> None:
        """exp(-exp_concavity f_t) is concave."""
        alpha = self.f.exp_concavity
        if alpha is None:
            return
        valid = isinstance(alpha, float) and 0.0 < alpha < np.inf
        require(valid, f"exp_concavity is {alpha!r}, expected a number above 0 or None")
        for s, i, j, between, where in self.between():
            here, there = alpha * (between - self.values[i]), alpha * (between - self.values[j])
            # exp(-alpha f) on the chord over that between, in logarithms so that none is too large
            above = np.logaddexp(np.log(s) + here, np.log(1 - s) + there)
            t = int(np.argmax(above))
            what = f"with exp_concavity {alpha:g}, in round {t}, {where}, log(chord/value)"
            require.at_most(above[t], alpha * self.tolerance, what)

    def subgradients_support(self) -> None:
        """f_t(z) >= f_t(x) + <grad f_t(x), z - x>."""
        for i, x in enumerate(self.flat):
            support = self.values[i, self.looked_at] + (self.flat - x) @ self.gradients[i].T
            above = support - self.values[:, self.looked_at]
            j, t = np.unravel_index(int(np.argmax(above)), above.shape)
            at = f"x = {format_point(x)}, z = {format_point(self.flat[j])}"
            what = f"in round {self.looked_at[t]}, {at}, how much larger the right side"
            require.at_most(above[j, t], self.tolerance, what)

    def weights_add_up(self) -> None:
        """subgradient(x, w) is the weighted sum of the rounds' subgradients."""
        w, u, k = self.weights(), self.weights("more weights"), len(self.f)
        some, room = np.where(np.isin(np.arange(k), self.looked_at), w, 0.0), k * self.tolerance
        for x, gradients in zip(self.xs, self.gradients, strict=True):
            require(not self.weighted(x, np.zeros(k)).any(), "weights of zero do not give zero")
            alone, both = some[self.looked_at] @ gradients, self.weighted(x, w + 2 * u)
            require.close(self.weighted(x, some), alone, room, "against one round at a time, it")
            require.close(
                both, self.weighted(x, w) + 2 * self.weighted(x, u), room, "under w + 2 u, it"
            )

    def gradients_are_the_rounds(self) -> None:
        """gradients are the rounds' subgradients, and slopes the norms of them."""
        w, k = self.weights(), len(self.f)
        for x, looked_at in zip(self.xs, self.gradients, strict=True):
            gradients = _numbers(self.f.gradients(x)).reshape(k, -1)
            sums = "the sum of gradients under the weights"
            require.close(w @ gradients, self.weighted(x, w), k * self.tolerance, sums)
            slopes, norms = self.f.slopes(x)[self.looked_at], np.linalg.norm(looked_at, axis=1)
            require.close(slopes, norms, self.tolerance, "the slope of a round")

    def pieces_have_gradients(self) -> None:
        """pieces are at most the round's value, the largest equal; piece_gradients are theirs."""
        f, x = self.f, self.xs[-1]
        if f.pieces(x) is None:
            return
        tables = np.array([as_floats(f.pieces(z)) for z in self.xs])
        require.close(tables.max(axis=2), self.values, self.tolerance, "the largest piece")
        rounds, pieces = (each.reshape(-1) for each in np.indices(tables[-1].shape))
        try:
            gradients = as_floats(f.piece_gradients(x, rounds, pieces)).reshape(len(rounds), -1)
        except NotSupported:
            return
        least = tables[-1].reshape(-1) + (self.flat - self.flat[-1]) @ gradients.T
        over = float((least - tables.reshape(len(tables), -1)).max())
        slack = self.tolerance * (1.0 + float(np.abs(gradients).max(initial=0.0)))
        require.at_most(over, slack, f"how far a piece is below its gradient at {format_point(x)}")

    def total_is_the_sum(self) -> None:
        """total() is the sum over the rounds."""
        f = self.f
        if isinstance(f, batch.LinearTotal):
            c, constant = f.total()
            require.array(c, f.shape, np.zeros(0), "c")
            total = self.flat @ c.reshape(-1) + constant
            require.close(total, self.values.sum(axis=1), self.tolerance * len(f), "it")

    def halfspaces_say_the_same(self) -> None:
        """halfspaces() state that every value is at most 0, epigraph() the value of each round."""
        f = self.f
        for name in ("halfspaces", "epigraph") if isinstance(f, batch.PiecewiseLinear) else ():
            A, b, rounds = getattr(f, name)()
            sizes = (*A.shape, len(rounds))
            fits = sizes == (len(b), self.flat.shape[1], len(b)) and (np.diff(rounds) >= 0).all()
            require(fits or name == "halfspaces", f"{name} has sizes {sizes} for rounds {rounds}")
            room = self.tolerance + eps_of(self.xs[0]) ** 0.5 * float(np.abs(b).max())
            for x, values in zip(self.flat, self.values, strict=True):
                pieces, largest, of = A @ x - b, np.full(len(f), -np.inf), f"a row of {name}"
                above = f"at {format_point(x)}, how far {of} is above the value of its round"
                require.at_most(float((pieces - values[rounds]).max()), room, above)
                np.maximum.at(largest, rounds, pieces)
                if name == "epigraph":
                    require.close(largest, values, room, "the largest piece of a round")
                elif min(abs(values.max()), abs(largest.max())) > room:
                    same = (values.max() > 0) == (largest.max() > 0)
                    require(same, f"at {format_point(x)} the largest row has another sign")

    def rounds_can_be_joined(self) -> None:
        """Rounds taken apart and joined are the same functions."""
        f, x = self.f, self.xs[0]
        whole = chained([f[t : t + 1] for t in range(len(f))])
        same = len(whole) == len(f) and whole.shape == f.shape
        require(same, f"{len(whole)} rounds of shape {whole.shape} came of {len(f)} of {f.shape}")
        for what in ("values", "gradients"):
            joined, alone = (_numbers(getattr(each, what)(x)) for each in (whole, f))
            room = 1e-5 * (1.0 + float(np.abs(alone).max()))
            require.close(joined, alone, room, f"the {what} of the joined rounds")
