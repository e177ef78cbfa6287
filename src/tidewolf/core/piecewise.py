"""What exact solvers ask of functions, as capabilities that a class inherits.

- `LinearTotal`: the sum over the rounds is one affine function,
- `PiecewiseLinear`: every round is a maximum of affine pieces, so that "g_t(x) <= 0 for every t" is
  a list of half-spaces.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.sparse import stack_rows
from tidewolf.core.types import Floats, Int64s


class LinearTotal(ABC):
    """A batch whose sum over its rounds is <c, x> + constant, which `total()` gives.

    A capability: a class of functions that inherits it, too, is solved in hindsight as a linear
    program.

    Examples
    --------
    >>> f = tw.functions.Affine([[1.0, 0.0], [2.0, 3.0]], [0.5, 0.5])
    >>> isinstance(f, tw.functions.LinearTotal), f.total()
    (True, (array([3., 3.]), -1.0))
    """

    @abstractmethod
    def total(self) -> tuple[Floats, float]:
        """The sum over the rounds as (c, constant).

        Returns
        -------
        tuple of array and float
            c, of the shape of a point and in float64, and the constant.
        """


class Halfspaces(NamedTuple):
    """Half-spaces A x <= b on flattened points.

    Row i is a piece of the function of round `rounds[i]`, so <a_i, x> - b_i <= g_{rounds[i]}(x).

    Parameters
    ----------
    A : array
        The rows, a matrix of NumPy or a sparse array of SciPy.
    b : array
        The offsets, one a row.
    rounds : array
        The round that each row comes from, counted from 0.

    Examples
    --------
    >>> g = tw.functions.Affine([[1.0, 0.0], [2.0, 3.0]], [0.5, 0.7])
    >>> g.halfspaces().b
    array([0.5, 0.7])
    """

    A: Any
    b: Floats
    rounds: Int64s


class PiecewiseLinear(ABC):
    """A batch for which "every value is at most 0" is a list of half-spaces: each round is the
    largest of some affine pieces.

    A capability: functions that inherit it, too, are solved in hindsight as a linear program.

    Examples
    --------
    >>> g = tw.functions.Capacity([[0.5, 0.2], [0.4, 0.3]])
    >>> isinstance(g, tw.functions.PiecewiseLinear)
    True
    >>> g.halfspaces().b  # of each entry only the smallest capacity matters
    array([0.4, 0.2])
    """

    @abstractmethod
    def halfspaces(self) -> Halfspaces:
        """The half-spaces, redundant ones left out where that is free; those of a single round are
        its pieces.
        """

    def offsets(self) -> Floats:
        """The offsets of the half-spaces, `halfspaces().b`.

        Returns
        -------
        array
            One a row; functions with very many rows know them without those.
        """
        return self.halfspaces().b

    def epigraph(self) -> Halfspaces:
        """The pieces of every round, none left out: f_t(x) is the largest <a_i, x> - b_i of its
        rows, those with rounds[i] = t, and f_t(x) <= s_t where all of them are.

        Returns
        -------
        Halfspaces
            The rows in the order of the rounds.
        """
        batch: Any = self
        each = [batch.view(slice(t, t + 1)).halfspaces() for t in range(len(batch))]
        return together(each, range(len(each))) if each else self.halfspaces()


def together(parts: Sequence[Halfspaces], starts: Iterable[int]) -> Halfspaces:
    tables, offsets, rounds = zip(*parts, strict=True)
    later = [each + start for each, start in zip(rounds, starts, strict=True)]
    return Halfspaces(stack_rows(tables), np.concatenate(offsets), np.concatenate(later))
