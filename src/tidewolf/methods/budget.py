"""Budgets as settings: a total for a period, and the plan that it makes for each round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import numpy as np

from tidewolf.core import settings, values
from tidewolf.core.arguments import as_items, shown
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.types import Floats, Int64s
from tidewolf.experts.season import PeriodSetting, duration
from tidewolf.methods.settings import Numbers


@final
@dataclass(frozen=True, eq=False, repr=False)
class Budget(values.Value):
    """An amount that may be spent per period, in whatever rounds are best.

    A learner that is given budgets observes what each round spends, and keeps the total near the
    plan: overspending in one round is made up for in others. Rounds before the first that has a
    time stamp, of a period that is a duration, plan nothing.

    Parameters
    ----------
    name : str
        The name, by which `spend` gives what is spent.
    total : float, optional
        The amount for one period. None: `plan` says it.
    per : int or str, optional
        The period: a number of rounds, or a duration such as "1d" with the times of the rounds.
        None: all rounds of the learner's horizon.
    plan : tuple of float, optional
        The amount for each round, in place of a total; after the last one it begins again.
    carry : bool, default False
        Whether what was spent above or below the plan of one period counts in the next.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> learner = tw.Ensemble(K, budgets=[tw.Budget("usd", total=90.0, per=100)])
    >>> session = tw.Session(learner)
    >>> for _ in range(200):  # the fast one costs 1.8 per round, the slow one nothing
    ...     session.observe(costs=[1.0, 2.0], spend={"usd": [1.8, 0.0]})
    >>> float(session.play()[0].round(1))
    0.5
    """

    name: Annotated[str, settings.Text()]
    total: Annotated[float | None, settings.Magnitude()] = None
    per: Annotated[int | str | None, PeriodSetting()] = None
    plan: Annotated[tuple[float, ...] | None, Numbers(each=settings.Number(least=0.0))] = None
    carry: Annotated[bool, settings.Flag()] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.total is None) is (self.plan is None):
            raise InvalidInput(
                f"Budget {self.name!r} needs one of total and plan.", setting="total"
            )

    @property
    def seconds(self) -> float | None:
        """The period in seconds; None if it is a number of rounds."""
        return duration(self.per, "per") if isinstance(self.per, str) else None

    def planned(self, number: int, elapsed: float, horizon: int | None) -> float:
        """What may be spent in a round, counted from 0, that is so many seconds long."""
        if self.plan is not None:
            return float(self.plan[number % len(self.plan)])
        assert self.total is not None
        if (seconds := self.seconds) is not None:
            return self.total * elapsed / seconds if elapsed > 0.0 else 0.0
        rounds = self.per or horizon
        if rounds is None:
            raise InvalidInput(
                f"Budget {self.name!r} needs per, or the learner a horizon.", setting="per"
            )
        return self.total / int(rounds)

    def windows(self, rounds: int, time: Floats | None) -> Int64s:
        """The number of the period of each round, in order; all 0 if nothing starts over."""
        if self.carry or self.per is None:
            return np.zeros(rounds, dtype=np.int64)
        seconds = self.seconds
        if seconds is None:
            return np.arange(rounds) // int(self.per)
        if time is None:
            return np.zeros(rounds, dtype=np.int64)
        return np.floor(np.nan_to_num(time) / seconds).astype(np.int64)


@dataclass(frozen=True)
class BudgetsSetting(settings.Check):
    """Budgets of different names."""

    words: ClassVar[str] = "budgets, which files say elsewhere"

    def __call__(self, value: Any, what: str) -> tuple[Budget, ...]:
        given = (value,) if isinstance(value, Budget) else as_items(value, what, "[tw.Budget(..)]")
        for one in given:
            if not isinstance(one, Budget):
                raise WrongType(f'{what} must be tw.Budget("usd", total=..), not {shown(one)}.')
        if len({one.name for one in given}) != len(given):
            raise InvalidInput(f"{what} must have different names.")
        return tuple(given)

    def read(self, value: Any) -> None:
        """Nothing: a file says budgets in tables of their own."""


Budgets = Annotated[tuple[Budget, ...], BudgetsSetting()]


def worst_windows(h: Floats, windows: Int64s) -> tuple[float, Floats]:
    """The largest net overspend of a run of rounds within one period, and the net of each."""
    worst = queue = 0.0
    for i, each in enumerate(h.tolist()):
        if i and windows[i] != windows[i - 1]:
            queue = 0.0
        queue = max(0.0, queue + each)
        worst = max(worst, queue)
    if not len(h):
        return 0.0, h
    starts = np.flatnonzero(np.diff(windows, prepend=windows[0] - 1))
    return worst, np.add.reduceat(h, starts)
