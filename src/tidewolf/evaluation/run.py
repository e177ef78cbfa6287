"""A learner over a recorded stream, and everything that was measured on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.batch import Stream
from tidewolf.core.errors import MissingExtra, NotSupported
from tidewolf.core.feedback import Bandit
from tidewolf.core.learner import Bound, Learner, Record
from tidewolf.evaluation.certificate import UNSEEN, Audit, Certificate, certify
from tidewolf.evaluation.hindsight import Comparator, best_in_hindsight
from tidewolf.evaluation.trail import Trail
from tidewolf.functions.base import LinearTotal
from tidewolf.loop import play
from tidewolf.projection import ActiveSet
from tidewolf.sets import FlowPolytope

Floats = np.ndarray[Any, np.dtype[np.float64]]
_PROGRESS_SECONDS = 0.1


class Moment(NamedTuple):
    """How far a run has come."""

    rounds_done: int
    rounds: int
    calls: int
    loss_total: float
    violation_total: float


@dataclass(frozen=True, eq=False, repr=False)
class Run(Record):
    """What happened, round by round. `regret` needs the comparator, which is computed when first asked."""

    learner: Learner[Any]
    stream: Stream
    max_excess: float
    """largest excess of a played point over the set"""
    seconds: float
    """spent in the loop: acting, evaluating, learning"""
    audit: Audit
    """what was gathered of the learner's projections; see `certificate`"""
    known: Comparator | None = None
    """the comparator, where somebody has computed it already"""
    trail: Trail | None = None
    """the mean point of each of a bounded number of parts of the rounds; None where nobody kept them"""

    @property
    def oracle_calls(self) -> int:
        return int(self.calls.sum())

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences worth knowing: the learner's own, and how many rounds it did not see."""
        own = self.learner.notes(self.final_state)
        if not self.unseen:
            return own
        return (*own, f"{self.unseen} of the {self.rounds} rounds were played without feedback; their losses and breaches count.")

    @property
    def unseen(self) -> int:
        """Rounds that were played, and counted, without feedback to the learner."""
        return self.stream.unseen

    @cached_property
    def comparator(self) -> Comparator | None:
        """The best fixed point in hindsight, or None where no exact method applies."""
        if self.known is not None or self.rounds == 0:
            return self.known
        try:
            return best_in_hindsight(self.learner.hard_set, self.stream)
        except NotSupported:
            return None

    @property
    def regret(self) -> tuple[float, float] | None:
        """Total loss minus the comparator's, as a certified interval; None where no point is feasible or none is known."""
        best = self.comparator
        if self.rounds == 0:
            return 0.0, 0.0
        if best is None or best.feasible is False:
            return None
        total = float(self.losses.sum())
        return total - best.upper, total - best.lower

    def regret_curve(self) -> Floats | None:
        """Cumulative loss minus that of the comparator's point."""
        best = self.comparator
        if best is None or best.point is None:
            return None
        curve: Floats = np.cumsum(self.losses - to_numpy(self.stream.losses.values(best.point)))
        return curve

    @cached_property
    def bound(self) -> Bound:
        """What the learner's theory promises for this run."""
        best = self.comparator
        if best is not None and best.feasible is False:
            return Bound(None, None, "No point satisfies every constraint, so there is nothing to compare with.")
        return self.learner.bound(self) if not self.unseen else Bound(None, None, UNSEEN)

    @cached_property
    def certificate(self) -> Certificate:
        """What the run can prove about itself, checked when first asked."""
        return certify(self)

    def summary(self) -> dict[str, Any]:
        """The numbers of the run as plain data."""
        regret, bound, best = self.regret, self.bound, self.comparator
        return {
            "learner": type(self.learner).__name__,
            "rounds": self.rounds,
            "regret": None if regret is None else {"lower": _plain(regret[0]), "upper": _plain(regret[1])},
            "violation": float(self.violations.sum()),
            "oracle_calls": self.oracle_calls,
            "calls_per_round": self.oracle_calls / max(1, self.rounds),
            "seconds": self.seconds,
            "max_excess": self.max_excess,
            "feasible_in_hindsight": None if best is None else best.feasible,
            "bound": {"regret": bound.regret, "violation": bound.violation},
            "certificate": {
                "membership": self.certificate.checks[0].holds,
                "bound_reason": bound.reason,
                **self.certificate.summary(),
            },
            "unseen": self.unseen,
        }

    def to_pandas(self) -> Any:
        """One row for each round, as a pandas DataFrame; the regret so far where there is one."""
        try:
            from pandas import DataFrame, RangeIndex
        except ImportError:
            raise MissingExtra('to_pandas needs pandas, not installed here; type: pip install "tidewolf[app]"') from None
        columns = {"loss": self.losses, "violation": self.violations, "calls": self.calls, "distance": self.distances}
        curve = self.regret_curve()
        known = {} if curve is None else {"regret": curve}
        return DataFrame({**columns, **known}, index=RangeIndex(self.rounds, name="round"))

    def plot(self) -> Any:
        """Regret, violation and calls as they add up, as a matplotlib Figure."""
        from tidewolf.report.pictures import plot_runs

        return plot_runs([self])

    def _repr_html_(self) -> str:
        """The table and the figures, for notebooks."""
        from tidewolf.report.notebook import run_html

        return run_html(self)

    def __repr__(self) -> str:
        regret, best = self.regret, self.comparator
        unseen = f" ({self.unseen} unseen)" if self.unseen else ""
        shown = "unknown" if regret is None else f"[{regret[0]:.6g}, {regret[1]:.6g}]"
        verdict = "" if best is None or best.infeasibility is None else f"\n  {best.infeasibility.sentence}"
        return (
            f"Run of {self.learner!r}\n"
            f"  rounds {self.rounds}{unseen}, regret {'none' if verdict else shown}, violation {self.violations.sum():.6g}, "
            f"oracle calls {self.oracle_calls}, largest excess {self.max_excess:.2g}, {self.seconds:.3g} s{verdict}"
        )

    def __str__(self) -> str:
        return f"{self!r}\n{self.certificate}"


def run(
    learner: Learner[Any],
    stream: Stream,
    *,
    progress: Callable[[Moment], None] | None = None,
    comparator: Comparator | None = None,
) -> Run:
    """Play the whole stream. `progress` is told a few times a second how far it is; `comparator` saves computing it again."""
    T, t, calls = len(stream), 0, 0
    losses, violations, distances = np.empty(T), np.empty(T), np.empty(T)
    calls_at = np.zeros(T, dtype=np.int64)
    moves = play(learner, stream)
    _compile_kernels()
    state, audit, trail = learner.start(), Audit(learner), Trail(T, learner.hard_set.shape)
    excess, seconds, last = 0.0, 0.0, time.perf_counter()
    ends: list[int] = []
    measures: list[tuple[float, ...]] = []
    clock = time.perf_counter()
    for played in moves:
        seconds += time.perf_counter() - clock
        stop = t + played.losses.shape[0]
        losses[t:stop] = to_numpy(played.losses)
        violations[t:stop] = np.maximum(to_numpy(played.constraints), 0.0)
        distances[t:stop] = state.distance
        calls_at[stop - 1] += played.state.calls - calls
        points = played.x if learner.needs is Bandit else played.x[None, ...]
        excess = max(excess, *(learner.hard_set.excess(points[i, ...]) for i in range(points.shape[0])))
        trail.see(points, stop - t)
        t, state, calls = stop, played.state, played.state.calls
        if played.seen:
            ends.append(t)
            measures.append(learner.measures(state))
            audit.see(state)
        clock = time.perf_counter()
        if progress is not None and (clock - last > _PROGRESS_SECONDS or t == T):
            last = clock
            progress(Moment(t, T, calls, float(losses[:t].sum()), float(violations[:t].sum())))
    return Run(
        losses=losses,
        violations=violations,
        calls=calls_at,
        distances=distances,
        final_state=state,
        linear_losses=isinstance(stream.losses, LinearTotal),
        ends=np.array(ends, dtype=np.int64),
        measures=np.array(measures, dtype=np.float64).reshape(len(ends), -1 if ends else 0),
        learner=learner,
        stream=stream,
        max_excess=excess,
        seconds=seconds,
        audit=audit,
        known=comparator,
        trail=trail,
    )


@cache
def _compile_kernels() -> None:
    """Use the kernels of flows and active sets once, on a toy, so that `seconds` does not count their compiling."""
    K = FlowPolytope.examples()[0]
    active = ActiveSet.start(K)
    for direction in np.eye(K.shape[0]):
        y = K.center - 3.0 * K.tangent(direction)
        active = active.project(K, y, tol=1e-6).active
    K.excess(active.x)


def _plain(number: float) -> float | None:
    return number if np.isfinite(number) else None
