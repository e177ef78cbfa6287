"""The features of a round, known before it: few cells with weights that are at least 0 and sum
to 1.

    x_t = sum_j phi_tj W_j,      phi_t >= 0,   sum_j phi_tj = 1,   W_j in K

so that x_t is a member of K. If nothing is known of a round there are no features, and an
expert that needs them is skipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Floats, Int64s
from tidewolf.core.values import Value

Features: TypeAlias = tuple[Int64s, Floats]
"""The cells that count in a round, in any order, and their weights."""


class Context(Value, ABC):
    """Abstract: what kind of round comes next, from what is known before it.

    A class of one's own is a frozen dataclass with `cells` and `features`.

    Examples
    --------
    >>> isinstance(tw.experts.Season(96), tw.experts.Context)
    True
    """

    cells: Any
    """how many cells there are, a whole number from 1; a field or a property of a subclass"""

    @abstractmethod
    def features(self, info: RoundInfo | None, t: int) -> Features | None:
        """The cells of the coming round and their weights, at least 0 and with sum 1; None where
        they are not known.

        `t` is the number of rounds seen so far.
        """
