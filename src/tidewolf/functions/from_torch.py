"""Plain callables of torch as functions, with gradients by its automatic differentiation.

Points of torch are computed with as they are; those of other libraries in float64. Data move to
where the point is, and floating ones take its dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import WrongShape
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.autograd import Autograd, Engine, Rounds, examples_of, resolved


def from_torch(
    value: Callable[..., Any],
    shape: Shape | int,
    rounds: int | None = None,
    *,
    data: Any = None,
) -> Autograd:
    """Functions from a plain callable of torch; gradients come by themselves.

    Parameters
    ----------
    value : callable
        A torch scalar: value(x, *row) where `data` are given, row what they hold of the round;
        value(t, x) where `rounds` are; else value(x), a single round. x is a tensor of `shape`.
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
        Where torch is not installed.
    WrongType, WrongShape
        Where the callable is none, or data and rounds do not fit together.

    Examples
    --------
    >>> import torch
    >>> def logistic(x, features, label):
    ...     return torch.nn.functional.softplus(-label * (features @ x))
    >>> features, labels = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([1.0, -1.0])
    >>> losses = tw.functions.from_torch(logistic, 2, data=(features, labels))
    >>> losses.values(np.zeros(2)).round(4)
    array([0.6931, 0.6931])
    >>> losses.gradients(np.zeros(2))
    array([[-0.5, -1. ],
           [ 0. , -0.5]])
    """
    call, sides, own = resolved(value, shape, rounds, data, "torch")
    return FromTorch._unchecked(
        _engine=_Torch(value, call), _shape=sides, _ts=own.ts, _data=own.data
    )


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class FromTorch(Autograd):
    """Functions that torch differentiates: what `from_torch` gives."""

    @classmethod
    def one(cls, value: Callable[[Any], Any], shape: Shape | int) -> Autograd:
        """A single round from a callable of x alone."""
        return from_torch(value, shape)

    @classmethod
    def examples(cls) -> Sequence[Autograd]:
        return examples_of(from_torch)


class _Torch(Engine):
    """Classic backward passes over what `vmap` computes of all rounds."""

    name: ClassVar[str] = "torch"

    def values(self, x: Array, rounds: Rounds, *, each: bool) -> Array:
        import torch

        with torch.no_grad():
            return self._values(_tensor(x), rounds, each)

    def gradients(self, x: Array, rounds: Rounds) -> Array:
        import torch

        point = _tensor(x)

        def together() -> Any:
            columns = _columns(rounds, point)
            slope = torch.func.grad(self._scalar, argnums=1)
            return torch.func.vmap(slope, in_dims=(None, None, 0))(0, point, columns)

        def apart() -> Any:
            return torch.stack([self._slope(point, one) for one in rounds.one_by_one()])

        return self.tried(together, apart) if self._many(rounds) else apart()

    def weighted(self, x: Array, rounds: Rounds, weights: Floats) -> Array:
        import torch

        given = _tensor(x)
        factors = torch.tensor(weights, dtype=given.dtype, device=given.device)
        point = given.clone().requires_grad_(True)
        with torch.enable_grad():
            total = (factors * self._values(point, rounds, False)).sum()
        return _backward(total, point)

    def _many(self, rounds: Rounds) -> bool:
        """Whether `vmap` is worth its time, and has something to go over but numbers of rounds."""
        return self.call == "rows" and len(rounds.ts) > 1

    def _slope(self, point: Any, one: Rounds) -> Any:
        import torch

        point = point.detach().clone().requires_grad_(True)
        with torch.enable_grad():
            value = self._values(point, one, False).sum()
        return _backward(value, point)

    def _values(self, point: Any, rounds: Rounds, each: bool) -> Any:
        import torch

        def together() -> Any:
            columns = _columns(rounds, point)
            ways = (None, 0 if each else None, 0)
            return torch.func.vmap(self._scalar, in_dims=ways)(0, point, columns)

        def apart() -> Any:
            columns = _columns(rounds, point)
            return torch.stack(
                [
                    self._scalar(
                        int(t), point[i, ...] if each else point, [part[i] for part in columns]
                    )
                    for i, t in enumerate(rounds.ts)
                ]
            )

        return self.tried(together, apart) if self._many(rounds) else apart()

    def _scalar(self, t: int, x: Any, row: Sequence[Any]) -> Any:
        """The callable's answer as a tensor without axes, in the dtype of x."""
        import torch

        found = self.value(*self.arguments(x, t, row))
        if isinstance(found, bool) or not isinstance(found, torch.Tensor | int | float):
            raise self.refuse(found)
        answer = torch.as_tensor(found, device=x.device)
        if answer.numel() != 1:
            raise WrongShape(
                f"A callable for from_torch answers one number, not {answer.numel()} of shape "
                f"{tuple(answer.shape)}: add them up, or take the largest."
            )
        return answer.reshape(()).to(x.dtype)


def _backward(total: Any, point: Any) -> Any:
    import torch

    if not total.requires_grad:  # a constant
        return torch.zeros_like(point)
    (found,) = torch.autograd.grad(total, point, allow_unused=True)
    return torch.zeros_like(point) if found is None else found


def _tensor(x: Array) -> Any:
    """The point itself where it is torch's, else in float64."""
    import torch

    if isinstance(x, torch.Tensor):
        return x.detach()
    return torch.tensor(np.asarray(to_numpy(x), dtype=np.float64))


def _columns(rounds: Rounds, point: Any) -> list[Any]:
    """The data where the point is, floating ones in its dtype."""
    import torch

    columns = []
    for part in rounds.data:
        if not isinstance(part, torch.Tensor):
            array = to_numpy(part)
            part = torch.as_tensor(array if array.flags.writeable else array.copy())
        kind = point.dtype if part.dtype.is_floating_point else part.dtype
        columns.append(part.detach().to(device=point.device, dtype=kind))
    return columns
