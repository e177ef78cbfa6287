"""How fast regret and violation grow with the horizon, the slope of log(total) on log(T),
beside the theorem's exponent.

    total = C T^p    <=>    log total = log C + p log T

One point for each run: several horizons, several seeds at each. p is the least-squares slope over
all of them and its interval is that of the regression, p +- t_{0.975, N-2}
s/sqrt(sum (log T - mean)^2) with s^2 the residual variance: it counts the scatter between seeds,
and what a straight line misses too, which resampling seeds would not. The regret counts by its
upper end. A total at or below zero has no logarithm. Without such runs the slope would be too
large, and a least value for them would determine it: no exponent is fitted then, and how many there
are is reported. (A regret at or below zero is below every guarantee.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core import arguments, values
from tidewolf.core.errors import WrongType, refuse, require
from tidewolf.evaluation.formatting import aligned, number_or_none
from tidewolf.evaluation.run import Run

CONFIDENCE = 0.95


class Growth(NamedTuple):
    """How one total grows with the horizon.

    Attributes
    ----------
    interval : tuple[float, float] or None
        Holds the exponent with 95 % confidence; infinite where two runs leave no scatter to
        judge by.
    theory : float or None
        The learner's own, up to logarithms.
    reason : str
        Why there is no exponent, if there is none.
    """

    exponent: float | None
    interval: tuple[float, float] | None
    theory: float | None
    reason: str = ""

    @property
    def slower(self) -> bool | None:
        """Whether it grows no faster than theory allows: None if the interval does not decide,
        or there is nothing to compare.
        """
        if self.interval is None or self.theory is None:
            return None
        low, high = self.interval
        return high <= self.theory or (None if low <= self.theory else False)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Rates(values.Value):
    """Growth exponents of regret and violation, as `tw.rates` gives them. Prints as a table.

    Parameters
    ----------
    learner : str
        The name of the learner's class.
    horizons : tuple of int
        The lengths of the runs, each once.
    runs : int
        How many runs there were.
    regret : Growth
        The exponent of the regret, its confidence interval, and the theorem's.
    violation : Growth
        The same for the violation.

    Examples
    --------
    >>> K, learner = tw.sets.Simplex(2), tw.LyapunovDescent(tw.sets.Simplex(2))
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 400)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 400))
    >>> growth = tw.rates([tw.run(learner, stream[:T]) for T in (100, 200, 400)])
    >>> growth.horizons, growth.violation.exponent < 0.5
    ((100, 200, 400), True)
    """

    learner: str
    horizons: tuple[int, ...]
    runs: int
    regret: Growth
    violation: Growth

    def summary(self) -> dict[str, Any]:
        """The numbers as plain data."""
        found = vars(self) | {"horizons": list(self.horizons)}
        for name in ("regret", "violation"):
            ends = found[name].interval
            plain = list(ends) if ends and math.isfinite(ends[1]) else None
            found[name] = found[name]._asdict() | {"interval": plain}
        return found

    def __repr__(self) -> str:
        rows, reasons = [("", "exponent", f"{100 * CONFIDENCE:.0f} % between", "theory")], []
        for name, growth in (("regret", self.regret), ("violation", self.violation)):
            ends = growth.interval
            between = "" if ends is None else f"{ends[0]:.3f} and {ends[1]:.3f}"
            exponent, theory = (number_or_none(x, ".3f") for x in (growth.exponent, growth.theory))
            rows.append((name, exponent, between, theory))
            reasons += [f"{name}: {growth.reason}"] if growth.reason else []
        first, *_, last = self.horizons
        about = f"Rates of {self.learner}: {self.runs} runs of {first} to {last} rounds"
        return "\n".join([about, *(f"  {line}".rstrip() for line in (*aligned(rows), *reasons))])


def rates(runs: Sequence[Run]) -> Rates:
    """Fit how fast regret and violation grow with the horizon.

    Parameters
    ----------
    runs : sequence of Run
        Runs of one learner at two horizons or more, several seeds at each.

    Returns
    -------
    Rates
        For regret and violation the exponent of T with its confidence interval, beside the
        theorem's.

    Raises
    ------
    WrongType
        If these are not at least two runs.
    InvalidInput
        If they are of several learners, or of one length.

    Examples
    --------
    >>> K, learner = tw.sets.Simplex(2), tw.LyapunovDescent(tw.sets.Simplex(2))
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 400)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 400))
    >>> growth = tw.rates([tw.run(learner, stream[:T]) for T in (100, 200, 400)])
    >>> growth.regret.exponent < 0.7
    True
    """
    runs = arguments.as_items(runs, "What rates takes", "[tidewolf.run(...), tidewolf.run(...)]")
    several = len(runs) != 1 and all(isinstance(run, Run) for run in runs)
    require(several, WrongType, "rates takes several runs, as tidewolf.run gives them.")
    names = sorted({type(run.learner).__name__ for run in runs})
    horizons = tuple(sorted({run.rounds for run in runs}))
    given = f"{', '.join(names) or 'none'} at {', '.join(map(str, horizons))} rounds"
    refuse(
        len(names) != 1 or len(horizons) < 2 or horizons[0] == 0,
        f"rates takes runs of one learner at two lengths or more, not {given}.",
    )
    regrets = [None if run.regret is None else run.regret[1] for run in runs]
    breaches, lengths = [float(run.violations.sum()) for run in runs], [run.rounds for run in runs]
    first, second = getattr(runs[0].learner, "exponents", (None, None))
    found = growth(lengths, regrets, first), growth(lengths, breaches, second)
    return Rates(names[0], horizons, len(runs), *found)


def growth(
    horizons: Sequence[int], totals: Sequence[float | None], theory: float | None = None
) -> Growth:
    from scipy.special import stdtrit

    known = [total for total in totals if total is not None and math.isfinite(total)]
    unknown, below = len(totals) - len(known), sum(total <= 0.0 for total in known)
    if unknown or below:
        how = f"not known for {unknown}" if unknown else f"at or below zero in {below}"
        return Growth(None, None, theory, f"{how} of {len(totals)} runs, so no exponent.")
    x, y = (np.log(each) - np.log(each).mean() for each in (horizons, known))
    slope, margin, freedom = float(x @ y / (x @ x)), math.inf, len(known) - 2
    if freedom:
        deviation = float(np.linalg.norm(y - slope * x)) / math.sqrt(freedom * float(x @ x))
        margin = float(stdtrit(freedom, (1.0 + CONFIDENCE) / 2.0)) * deviation
    return Growth(slope, (slope - margin, slope + margin), theory)
