"""Plain callables of jax as functions, with gradients by its automatic differentiation.

Everything is computed in float64, which jax has to be told: `jax.enable_x64` holds within each call
here and nowhere else. Arrays that a callable brings along were made by its owner, in float32 where
jax was not told: what differs from round to round goes into `data`.

Compiled code is for one number of rounds; to need few of them, rounds are filled up to a power of
two with copies of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import WrongShape
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.autograd import Autograd, Engine, Rounds, examples_of, resolved


def from_jax(
    value: Callable[..., Any],
    shape: Shape | int,
    rounds: int | None = None,
    *,
    data: Any = None,
) -> Autograd:
    """Functions from a plain callable of jax; gradients come by themselves, compiled.

    Parameters
    ----------
    value : callable
        A jax scalar: value(x, *row) where `data` are given, row what they hold of the round;
        value(t, x) where `rounds` are; else value(x), a single round. x is an array of `shape`.
        Convex in x.
    shape : int or tuple of int
        How many entries a point has, or its shape.
    rounds : int, optional
        How many rounds there are, where no data say it; t counts from 0. None: a single one.
    data : array or sequence of array, optional
        What differs from round to round: an array, or several, rounds first. With them all rounds
        are computed at once. None: the callable knows.

    Returns
    -------
    Batch
        The functions, one a round: losses or constraints of a stream, or of one round.

    Raises
    ------
    MissingExtra
        Where jax is not installed.
    WrongType, WrongShape
        Where the callable is none, or data and rounds do not fit together.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> def logistic(x, features, label):
    ...     return jnp.logaddexp(0.0, -label * (features @ x))
    >>> features, labels = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([1.0, -1.0])
    >>> losses = tw.functions.from_jax(logistic, 2, data=(features, labels))
    >>> losses.values(np.zeros(2)).round(4)
    array([0.6931, 0.6931])
    >>> losses.subgradient(np.zeros(2), np.array([1.0, 2.0]))
    array([-0.5, -2. ])
    """
    call, sides, own = resolved(value, shape, rounds, data, "jax")
    return FromJax._unchecked(_engine=_Jax(value, call), _shape=sides, _ts=own.ts, _data=own.data)


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class FromJax(Autograd):
    """Functions that jax differentiates: what `from_jax` gives."""

    @classmethod
    def one(cls, value: Callable[[Any], Any], shape: Shape | int) -> Autograd:
        """A single round from a callable of x alone."""
        return from_jax(value, shape)

    @classmethod
    def examples(cls) -> Sequence[Autograd]:
        return examples_of(from_jax)


class _Jax(Engine):
    """`grad` of what `vmap` computes of all rounds, compiled; each within 64 bits."""

    name: ClassVar[str] = "jax"

    def values(self, x: Array, rounds: Rounds, *, each: bool) -> Array:
        point = _float64(x)

        def together() -> Any:
            many, filled = _filled(rounds), point
            if each:
                filled = np.concatenate([point, _copies(point, len(many.ts))])
            run = self._values_at if each else self._values
            return run(filled, many.ts, many.data)[: len(rounds.ts)]

        def apart() -> Any:
            ways = enumerate(rounds.one_by_one())
            return np.array([self._one(point[i] if each else point, one) for i, one in ways])

        return self._tried(together, apart)

    def gradients(self, x: Array, rounds: Rounds) -> Array:
        point = _float64(x)

        def together() -> Any:
            many = _filled(rounds)
            return self._gradients(point, many.ts, many.data)[: len(rounds.ts)]

        def apart() -> Any:
            return np.stack([self._slope(point, one) for one in rounds.one_by_one()])

        return self._tried(together, apart)

    def weighted(self, x: Array, rounds: Rounds, weights: Floats) -> Array:
        point = _float64(x)

        def together() -> Any:
            many = _filled(rounds)
            factors = np.concatenate([weights, np.zeros(len(many.ts) - len(weights))])
            return self._weighted(point, many.ts, many.data, factors)

        def apart() -> Any:
            slopes = [self._slope(point, one) for one in rounds.one_by_one()]
            return sum(w * slope for w, slope in zip(weights, slopes, strict=True))

        return self._tried(together, apart)

    def _tried(self, together: Callable[[], Any], apart: Callable[[], Any]) -> Any:
        with _in_64_bits():
            return np.asarray(self.tried(together, apart))

    def _one(self, point: Floats, one: Rounds) -> Any:
        import jax.numpy as jnp

        return self._scalar(jnp.asarray(point), int(one.ts[0]), [part[0] for part in one.data])

    def _slope(self, point: Floats, one: Rounds) -> Any:
        import jax

        row = [part[0] for part in one.data]
        return jax.grad(lambda x: self._scalar(x, int(one.ts[0]), row))(point)

    def _scalar(self, x: Any, t: Any, row: Sequence[Any]) -> Any:
        """The callable's answer as an array without axes, in float64."""
        import jax
        import jax.numpy as jnp

        row = [jnp.asarray(part) for part in row]
        found = self.value(*self.arguments(x, t, row))
        if isinstance(found, bool) or not isinstance(found, jax.Array | int | float | np.generic):
            raise self.refuse(found)
        answer = jnp.asarray(found, dtype=jnp.float64)
        if answer.size != 1:
            raise WrongShape(
                f"A callable for from_jax answers one number, not {answer.size} of shape "
                f"{tuple(answer.shape)}: add them up, or take the largest."
            )
        return answer.reshape(())

    @cached_property
    def _values(self) -> Any:
        import jax

        return jax.jit(jax.vmap(self._scalar, in_axes=(None, 0, 0)))

    @cached_property
    def _values_at(self) -> Any:
        import jax

        return jax.jit(jax.vmap(self._scalar, in_axes=(0, 0, 0)))

    @cached_property
    def _gradients(self) -> Any:
        import jax

        return jax.jit(jax.vmap(jax.grad(self._scalar), in_axes=(None, 0, 0)))

    @cached_property
    def _weighted(self) -> Any:
        import jax

        each = jax.vmap(self._scalar, in_axes=(None, 0, 0))
        return jax.jit(jax.grad(lambda x, ts, data, w: w @ each(x, ts, data)))


def _in_64_bits() -> Any:
    import jax

    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # where jax is older

    return enable_x64()


def _float64(x: Array) -> Floats:
    return np.asarray(to_numpy(x), dtype=np.float64)


def _filled(rounds: Rounds) -> Rounds:
    """The rounds, and copies of the first up to a power of two."""
    k = len(rounds.ts)
    more = (1 << (k - 1).bit_length()) - k
    data = tuple(to_numpy(part) for part in rounds.data)
    if not more:
        return Rounds(rounds.ts, data)
    ts, *data_more = (
        np.concatenate([part, _copies(part, k + more)]) for part in (rounds.ts, *data)
    )
    return Rounds(ts, tuple(data_more))


def _copies(rows: Any, count: int) -> Any:
    """The first row as often as rows are missing."""
    return np.repeat(rows[:1], count - len(rows), axis=0)
