"""Quadratics, and the loss of growing wealth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self, final

import numpy as np

from tidewolf.core import settings
from tidewolf.core.arrays import as_number, eps_of, flat, like, namespace, to_numpy
from tidewolf.core.errors import InvalidInput, NotConvex, WrongShape
from tidewolf.core.types import Array, NDArray
from tidewolf.functions import base

# Convex quadratics of vectors:  f_t(x) = 1/2 <x, P_t x> + <q_t, x> + r_t,  P_t symmetric and
# positive semidefinite.
#
# The gradient is P_t x + q_t. P is one matrix for all rounds, or one per round.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Quadratic(base.ArrayBatch):
    """Convex quadratics of vectors, 1/2 <x, P_t x> + <q_t, x> + r_t.

    Parameters
    ----------
    P : array
        Symmetric and positive semidefinite, (rounds, n, n), or (n, n) for all.
    q : array
        The linear parts, of shape (rounds, n).
    r : array, optional
        The constants, one per round. None: zeros.
    exp_concavity : float, optional
        An alpha for which exp(-alpha f) is concave on the set. None: unknown.

    Examples
    --------
    >>> f = tw.functions.Quadratic(np.eye(2), [[0.0, 0.0], [-1.0, -1.0]])  # one P for both rounds
    >>> f.values(np.array([1.0, 1.0]))
    array([ 1., -1.])
    """

    P: Annotated[Array, base.Uncopied()]
    q: Annotated[Array, base.PerRound()]
    r: Annotated[Array, base.PerRound(axes=1)] = None
    exp_concavity: Annotated[float | None, settings.Number(above=0.0)] = None

    def _complete(self) -> None:
        self._require(self.q.ndim == 2, "q", "have shape (rounds, n)", WrongShape)
        rounds, n = self.q.shape
        if self.r is None:
            object.__setattr__(self, "r", np.zeros(rounds))
        self._match("P", (n, n) if self.P.ndim == 2 else (rounds, n, n), self.q)
        self._match("r", (rounds,), self.q)
        _require_convex(to_numpy(self.P), eps_of(self.P))

    @classmethod
    def one(cls, P: Array, q: Array, r: float = 0.0) -> Self:
        """A single round 1/2 <x, P x> + <q, x> + r."""
        q = base.one_round(q, "q of Quadratic.one")
        return cls(P, q, like(np.array([as_number(r, "r of Quadratic.one")]), q))

    @property
    def by_round(self) -> tuple[str, ...]:
        return ("q", "r") if self.P.ndim == 2 else ("q", "r", "P")

    def values(self, x: Array) -> Array:
        return (0.5 * (self.P @ x) + self.q) @ x + self.r

    def values_at(self, points: Array) -> Array:
        curved = points @ self.P if self.P.ndim == 2 else (self.P @ points[:, :, None])[:, :, 0]
        return namespace(points).vecdot(0.5 * curved + self.q, points) + self.r

    def subgradient(self, x: Array, weights: Array) -> Array:
        return weights @ self.gradients(x)

    def gradients(self, x: Array) -> Array:
        return self.P @ x + self.q

    @classmethod
    def examples(cls) -> Sequence[Self]:
        P = [np.eye(3), np.zeros((3, 3)), np.diag([4.0, 0.0, 0.5])]
        q = [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 1.0]]
        flat_in_one_direction = cls(np.ones((2, 2)), [[0.0, 0.0], [1.0, -2.0]], [1.0, -3.0])
        return flat_in_one_direction, cls(P, q), cls.one([[2.0]], [-1.0], 0.5)


def _require_convex(P: NDArray, eps: float) -> None:
    stack = P[None] if P.ndim == 2 else P
    slack = 100 * eps * stack.shape[1] * np.max(np.abs(stack), axis=(1, 2))
    skew = np.max(np.abs(stack - np.swapaxes(stack, 1, 2)), axis=(1, 2))
    least = np.linalg.eigvalsh(stack)[:, 0]
    for t in np.flatnonzero((skew > slack) | (least < -slack))[:1]:
        words = f"mirrored entries differ by {skew[t]:.3g}, the least eigenvalue is {least[t]:.3g}"
        raise (InvalidInput if skew[t] > slack[t] else NotConvex)(
            f"P of Quadratic must be symmetric, positive semidefinite; in round {t + 1} {words}.",
            setting="P",
        )


# The loss of growing wealth:  f_t(x) = -log <r_t, x>,  with r_t what a unit put into each asset is
# worth after round t.
#
# Summed over the rounds it is minus the logarithm of what a unit has become. The gradient is -r_t /
# <r_t, x>. It is defined where <r_t, x> > 0 in every round: on all of a simplex, when every r_t is
# positive.


@final
@dataclass(frozen=True, eq=False, repr=False)
class LogWealth(base.ArrayBatch):
    """Minus the logarithm of growth, -log <r_t, x>, where every <r_t, x> is positive.

    Parameters
    ----------
    returns : array
        What a unit of each asset becomes, (rounds, *shape); also a frame.

    Examples
    --------
    >>> f = tw.functions.LogWealth([[1.0, 2.0], [1.0, 0.5]])  # two days, two assets
    >>> wealth = np.exp(-f.values(np.array([0.5, 0.5])).sum())
    >>> float(wealth.round(6))
    1.125
    """

    exp_concavity = 1.0  # exp(-f_t) is <r_t, x>
    domain = "points with <r, x> > 0 for the returns r of every round"
    by_round = ("returns",)

    returns: Annotated[Array, base.PerRound()]

    @classmethod
    def one(cls, returns: Array) -> Self:
        """A single round with these returns."""
        return cls._unchecked(returns=base.one_round(returns, "returns of LogWealth.one"))

    def values(self, x: Array) -> Array:
        return -namespace(self.returns).log(self._growth(x))

    values_at = values  # type: ignore[assignment]

    def subgradient(self, x: Array, weights: Array) -> Array:
        return base.shaped(-((weights / self._growth(x)) @ base.rows(self.returns)), self.shape)

    def gradients(self, x: Array) -> Array:
        xp, growth = namespace(self.returns), self._growth(x)
        return -self.returns / xp.reshape(growth, (len(self),) + (1,) * len(self.shape))

    def _growth(self, x: Array) -> Array:
        """<r_t, x>, at one point or at a point for each round; refused where it is not positive."""
        own, returns = x.ndim > len(self.shape), base.rows(self.returns)
        growth = namespace(x).vecdot(returns, base.rows(x)) if own else returns @ flat(x)
        if growth.shape[0] and not bool(namespace(growth).all(growth > 0)):
            t = int(np.argmin(to_numpy(growth) > 0))
            words = f"<r, x> is {float(growth[t]):g} at this point in round {t + 1} of it"
            raise InvalidInput(f"LogWealth is defined on {self.domain}; {words}.")
        return growth

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls([[1.1, 0.9, 1.0], [0.5, 2.0, 1.0]]),
            cls.one([3.0]),
            cls(np.arange(1.0, 9.0).reshape(2, 2, 2)),
        )
