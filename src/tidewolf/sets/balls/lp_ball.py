"""The ball of a p-norm, 1 <= p <= inf.

    { |x|_p <= tau },    |x|_p = (sum_i |x_i|^p)^(1/p)

with p = 1 and p = inf as the limits: the sum and the largest of the sizes.

Oracle: by Hoelder's inequality -tau s/|s|_p with s_i = sign(d_i) |d_i|^(1/(p - 1)), where
|s|_p^p = <s, d>, from d divided by its largest size. For p = 1 the entries of largest size share
(`L1Ball` gives everything to the first, which is a vertex); for p = inf every entry is +-tau; for
d = 0 and p < inf every member is best and the center is the answer. Since

    |x|_2 <= |x|_p  for p <= 2,        |x|_2 <= n^(1/2 - 1/p) |x|_p  for p >= 2,

which e_1 and (1, ..., 1) attain, the radius is tau max(1, n^(1/2 - 1/p)) and, these being the other
way round for the largest ball inside, the inner radius tau min(1, n^(1/2 - 1/p)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, final

from tidewolf.core.arrays import as_own, namespace
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Number
from tidewolf.core.types import Array
from tidewolf.core.vertices import Dense, Vertex
from tidewolf.sets.balls.norm_ball import Bound, Entries, NormBall


class Power(Number):
    """The power of a norm: at least 1, and perhaps infinite."""

    def __call__(self, value: Any, what: str) -> float:
        infinite = isinstance(value, float) and value == math.inf
        return math.inf if infinite else super().__call__(value, what)


@final
@dataclass(frozen=True, eq=False, repr=False)
class LpBall(NormBall):
    """Arrays of p-norm at most `tau`. Geometry exact.

    Parameters
    ----------
    n : int or tuple of int
        How many entries a point has, or its shape.
    p : float
        The power of the norm: at least 1, or infinity.
    tau : float, default 1.0
        What the norm of a member is at most.

    Examples
    --------
    >>> tw.sets.LpBall(2, p=np.inf).lmo(np.array([3.0, -1.0]))
    array([-1.,  1.])
    """

    n: Entries
    p: Annotated[float, Power("The power of the norm: at least 1, or infinity.", least=1.0)]
    tau: Bound = 1.0

    @property
    def radius(self) -> float:
        return self.tau * max(1.0, self._norm_ratio)

    @property
    def inner_radius(self) -> float:
        return self.tau * min(1.0, self._norm_ratio)

    def norm(self, x: Array) -> float:
        """|x|_p."""
        xp = namespace(x)
        sizes = xp.abs(x)
        largest = float(xp.max(sizes))
        return (
            largest * float(xp.sum((sizes / largest) ** self.p)) ** (1.0 / self.p)
            if largest
            else 0.0
        )

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        xp = namespace(direction)
        sizes = xp.abs(direction)
        largest = float(xp.max(sizes))
        sizes = sizes / largest if largest else sizes
        s = sizes ** (1.0 / (self.p - 1.0) if self.p > 1.0 else math.inf)
        s = s * (self.tau / (float(xp.sum(s * sizes)) ** (1.0 / self.p) or 1.0))
        return Answer(Dense(xp.where(direction < 0, s, -s)))

    def atom(self, point: Array) -> Vertex:
        return Dense(as_own(point, "The member"))

    @classmethod
    def examples(cls) -> Sequence[LpBall]:
        return (cls(1, 3.0), cls(4, 1.5, 2.0), cls((2, 3), 5.0, 0.1))

    @property
    def _norm_ratio(self) -> float:
        return float(math.prod(self.shape) ** (0.5 - 1.0 / self.p))
