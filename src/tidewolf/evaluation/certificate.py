"""Certificates of runs: checks with their numbers, and totals beside the bounds that theory gives.

    membership   every played point is a member of K, by its excess or as tracking.py says
    distances    |x - y| after every update is what the learner said it is    with (x, y) the last
    tolerance   |x - y|^2 <= tol after every update that left calls to spend   (II)
        approximately feasible
    center   |y - c| <= |aimed - c| after every update   (III)   projection of `aimed`,
    members   max_{z in K} |y - z|^2 - |aimed - z|^2 <= 0, for a sample of the updates   (I)
        on K of center c
    calls        at most calls_per_round t oracle calls after t rounds, and one more for each of
                 them that had entries out
    guards       V sum (f_t(x_t) - f_t(z_t)) + sum w_t (g_t^+(x_t) - g_t^+(z_t)) <= A for every
                 member z of those a learner mixes, where the functions were seen there
    regret       total loss - the comparator's <= the learner's bound; <= its guarantee
    violation    sum of max(g_t(x_t), 0)       <= the learner's bound; <= its guarantee
    limits       sum of max(g_ti(x_t), 0)      <= the learner's bound, for each limit i that has one
    guarantees     the bounds, from what the run measured, <= the guarantees, from what was known
    before
                 it

(I) takes one oracle answer v: with s = aimed - y the maximum is |y - c|^2 - |aimed - c|^2 + 2 max_z
<s, z - c>, between the value at v and that plus twice the oracle's stated error. The sample is
every 2^k-th update that moved y, with the least k that leaves at most 64 of them (fewer in sets of
very many entries); its calls are the certificate's own. Squares are compared divided by the radius,
so that everything is a length and rounding allows the same everywhere.

A measured number is an interval. A check holds when all of it is allowed, fails when none of it is,
and is undecided between. Bounds speak of streams on which some point satisfies every constraint:
where that is not known, a violation above them decides nothing. Where feedback comes late, bounds
cover the rounds it has come of; each other one adds its slope times D, for the losses |grad
f_t(x_t)| D, for a limit that was broken |grad g_t(x_t)| D. The trivial values G_f D T and G_g D T
hold for any member, whatever it does: a bound at or above them is vacuous.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from tidewolf.core import arrays, batch, values
from tidewolf.evaluation.formatting import aligned, bound_text, plain, precise_interval
from tidewolf.evaluation.tracking import EVERY_POINT, Tracker
from tidewolf.functions.combined import leaves
from tidewolf.hindsight.task import FEASIBILITY_TOLERANCE
from tidewolf.methods import base, capabilities
from tidewolf.methods.steps.saddle import HOPELESS
from tidewolf.sets.base import membership_tolerance

if TYPE_CHECKING:
    from tidewolf.evaluation.intervals import Intervals
    from tidewolf.evaluation.run import Run

# How many updates at most are checked against the oracle.
SAMPLE = 64
# How many entries of points the sample may hold, in sets so large that this makes it smaller; 4
# updates are always in it.
_NUMBERS = 1 << 21
# By which share of a guarantee a measured bound may be above it.
_ROUNDING = 1e-9
_LAWS = {
    "distances": "|x - y| is what the learner says it is",
    "tolerance": "|x - y| is within tolerance while oracle calls are left",
    "center": "projecting brings y no farther from the center",
}
# Totals of T rounds are off by at most this many eps of what was added up.
SUMS = 1e3

UNSEEN = "Bounds are for rounds that the learner observes; it did not observe all of them."
IN_ORDER = (
    "Guarantees, and bounds on some of the rounds, need feedback in order, on decisions as played."
)
ALL_AVAILABLE = "Guarantees before the run need rounds in which all entries are available."
BY_GRADIENTS = (
    "Guarantees before the run need experts mixed by gradients; losses that declare their "
    "curvature are mixed by values."
)


def untold_in_words(run: Run) -> str:
    more = "Bounds add slope * diameter of each round that lacks feedback"
    return f"{more} ({run.pending:,} in all)." * bool(run.pending)


class CertificateCheck(NamedTuple):
    """One check, what was measured, and what is allowed.

    Attributes
    ----------
    upper : float
        The measured number lies between these.
    how : str
        By what it was measured, if there are several ways.
    """

    name: str
    law: str
    lower: float
    upper: float
    allowed: float
    how: str = ""

    @property
    def holds(self) -> bool | None:
        """None if the interval does not decide."""
        return self.upper <= self.allowed or (None if self.lower <= self.allowed else False)

    @property
    def named(self) -> str:
        return self.name if self.how in ("", EVERY_POINT) else f"{self.name} {self.how}"

    @property
    def sentence(self) -> str:
        verdicts = {True: "holds that", False: "does not hold that", None: "is not known whether"}
        measured = f"{precise_interval(self.lower, self.upper)} was measured"
        return f"It {verdicts[self.holds]} {self.law}: {measured}, {self.allowed:.4g} is allowed."

    def plain(self) -> dict[str, Any]:
        found = {"holds": self.holds, "measured": self.upper, "allowed": self.allowed}
        return found | ({"how": self.how} if self.how else {})


def all_hold(checks: Sequence[CertificateCheck]) -> bool | None:
    verdicts = {check.holds for check in checks}
    return False if False in verdicts else None if None in verdicts else True


class Total(NamedTuple):
    """A total over the run beside what theory allows it; None if there is no such number.

    Attributes
    ----------
    bound : float or None
        From what the run measured.
    guarantee : float or None
        From what was known before it.
    trivial : float or None
        What no run of members can exceed.
    """

    measured: tuple[float, float] | None
    bound: float | None
    guarantee: float | None
    trivial: float | None

    @property
    def size(self) -> float | None:
        """What was measured at most."""
        return self.measured and self.measured[1]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Certificate(values.Value):
    """The checks and bounds of a run, as `run.certificate` gives them. Prints as a table and a
    verdict.

    Parameters
    ----------
    checks : tuple of CertificateCheck
        Each a check, what was measured, and what is allowed.
    regret : Total
        The regret with its measured bound, its guarantee, and the trivial bound of any run in K.
    violation : Total
        The same for the violation.
    reasons : tuple of str
        Why a bound or a guarantee is missing, if one is.
    guards : tuple of Guard, default ()
        For each expert, what was lost to it in loss plus weighted violation, and its bound.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> certificate = tw.run(tw.LyapunovDescent(K), stream).certificate
    >>> certificate.holds, certificate.failures
    (True, ())
    >>> [check.name for check in certificate.checks][:3]
    ['membership', 'distances', 'tolerance']
    """

    checks: tuple[CertificateCheck, ...]
    regret: Total
    violation: Total
    reasons: tuple[str, ...]
    guards: tuple[capabilities.Guard, ...] = ()
    run: Run = field(init=False)

    @cached_property
    def intervals(self) -> Intervals:
        """What `tw.intervals` finds of the run: for every interval regret, violation, and the
        measured bounds of both. Computed on first use, with a best fixed decision for each.
        """
        from tidewolf.evaluation.intervals import intervals

        return intervals(self.run)

    @property
    def holds(self) -> bool | None:
        """Whether every check holds; None if none fails but some are undecided."""
        return all_hold(self.checks)

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for each check that fails."""
        return tuple(check.sentence for check in self.checks if check.holds is False)

    def summary(self) -> dict[str, Any]:
        """Everything as plain data."""
        found = {
            "holds": self.holds,
            "failures": self.failures,
            "checks": {check.name: check.plain() for check in self.checks},
            "guarantee": {"regret": self.regret.guarantee, "violation": self.violation.guarantee},
            "trivial": {"regret": self.regret.trivial, "violation": self.violation.trivial},
            "guards": self.guards,
        }
        return {name: plain(part) for name, part in found.items()}

    @property
    def verdict(self) -> str:
        """The checks in a line, what fails and what is undecided in full."""
        said = [check.sentence for check in self.checks if check.holds is not True]
        kept = ", ".join(check.named for check in self.checks if check.holds)
        word = {True: "holds", False: "FAILS", None: "undecided"}[self.holds]
        word += f" (kept: {kept})" * bool(kept)
        return " ".join([f"certificate {word}{':' if said else '.'}", *said])

    def __str__(self) -> str:
        rows = [["", "measured", "measured bound", "guarantee"]]
        for name, total in (("regret", self.regret), ("violation", self.violation)):
            measured = "none" if total.measured is None else precise_interval(*total.measured)
            bounds = (bound_text(total.size, x) for x in (total.bound, total.guarantee))
            rows.append([name, measured, *bounds])
        kept = self.run.decisions is not None and len(self.run.decisions) == self.run.rounds
        more = ("Bounds of every interval: certificate.intervals.",) * kept
        lines = (*aligned(rows), *self.reasons, *more, self.verdict)
        return "\n".join(f"  {line}" for line in lines)


# Between what max_{z in K} |y - z|^2 - |aimed - z|^2 lies for one update, over the radius.
Weighed = tuple[float, float]


class Audit(Tracker):
    """What is gathered of a learner's projections while it runs: a few products of vectors for each
    update, and at worst what was measured of each of `_LAWS`.
    """

    kept = ("updates", "_moved", "_stride", "_worst", "sample")

    def __init__(self, learner: base.Learner[Any]) -> None:
        self._learner = capabilities.diagnosed(learner)
        self.updates = 0
        self.sample: tuple[capabilities.ProjectionRecord | Weighed, ...] = ()
        self.most_kept = max(4, min(SAMPLE, _NUMBERS // math.prod(learner.K.shape)))
        self._moved, self._stride = 0, 1
        self._worst: tuple[float, ...] = (0.0, -math.inf, 0.0)

    def see(self, state: Any) -> None:
        last = self._learner.last_projection(state)
        if last is None:
            return
        self.updates += 1
        unit, apart = last.over.radius or 1.0, last.x - last.y
        apart2 = arrays.inner(apart, apart)
        self._note(0, abs(apart2 - state.distance**2) / unit)
        if last.calls_left >= 1:
            self._note(1, (apart2 - last.tolerance2) / unit)
        if last.y is not last.before_projection:
            self._note(2, _closer(last) / unit)
            if self._moved % self._stride == 0:
                self._keep(last)
            self._moved += 1

    def numbers(self) -> tuple[float, ...]:
        return (*self._worst, self.updates, self._moved, self._stride)

    def expect(self, moves: int) -> None:
        """So many projections are to come that move y: only those are kept that thinning would
        leave.
        """
        while -(-moves // self._stride) > self.most_kept:
            self._stride *= 2

    @property
    def room(self) -> int:
        return self.most_kept + 1 - len(self.sample)

    def took(
        self,
        worst: Sequence[float],
        updates: int,
        moved: int,
        kept: Sequence[capabilities.ProjectionRecord | Weighed],
    ) -> None:
        stride = self._stride
        for at, last in enumerate(kept, start=-(-self._moved // stride)):
            if at * stride % self._stride == 0:
                self._keep(last)
        self._worst, self.updates, self._moved = (*worst,), updates, moved

    def _keep(self, last: capabilities.ProjectionRecord | Weighed) -> None:
        self.sample = (*self.sample, last)
        if len(self.sample) > self.most_kept:
            self.sample, self._stride = self.sample[::2], 2 * self._stride

    def _note(self, law: int, measured: float) -> None:
        if not measured <= self._worst[law]:  # a NaN is the worst
            self._worst = (*self._worst[:law], measured, *self._worst[law + 1 :])

    def parts(self) -> tuple[Any, ...]:
        self.sample = tuple(map(_weighed, self.sample))
        return super().parts()

    def checks(self, allowed: float) -> list[CertificateCheck]:
        if not self.updates:
            return []
        members = [_weighed(last) for last in self.sample]
        lower, upper = (max((ends[i] for ends in members), default=0.0) for i in (0, 1))
        some = f"{len(members)} of {self._moved} updates asked"
        law = f"projecting brings y no farther from any member of the set ({some})"
        return [
            *(
                CertificateCheck(name, law, worst, worst, allowed)
                for (name, law), worst in zip(_LAWS.items(), self._worst, strict=True)
            ),
            CertificateCheck("members", law, lower, upper, allowed),
        ]


def _closer(last: capabilities.ProjectionRecord) -> float:
    """|y - c|^2 - |before_projection - c|^2."""
    after, before = last.y - last.over.center, last.before_projection - last.over.center
    return arrays.inner(after, after) - arrays.inner(before, before)


def _weighed(last: capabilities.ProjectionRecord | Weighed) -> Weighed:
    if not isinstance(last, capabilities.ProjectionRecord):
        return last
    K, s = last.over, last.before_projection - last.y
    answer = K.answer(-s)
    at_vertex = _closer(last) + 2.0 * (answer.vertex.inner(s) - arrays.inner(s, K.center))
    unit = K.radius or 1.0
    return at_vertex / unit, (at_vertex + 2.0 * answer.error) / unit


def certify(run: Run) -> Certificate:
    learner, found, worst = run.learner, run.membership, run.max_infeasibility
    allowed = membership_tolerance(learner.K.center, learner.K.radius)
    membership = CertificateCheck("membership", found.law, worst, worst, allowed, found.how)
    guards = (
        learner.guards(run.final_state) if isinstance(learner, capabilities.MixesExperts) else ()
    )
    checks = [membership, *run.audit.checks(allowed), *_own_checks(run, guards)]
    bound, guarantee = run.bound, _guarantee(run)
    slopes = capabilities.diagnosed(learner).slopes(run.final_state) or (None, None)
    size, violation = learner.K.diameter * run.rounds, float(run.violations.sum())
    trivial = [None if slope is None else slope * size for slope in slopes]
    regrets = Total(run.regret, bound.regret, guarantee.regret, trivial[0])
    violations = Total((violation, violation), bound.violation, guarantee.violation, trivial[1])
    if not isinstance(learner, capabilities.Explores):
        checks += _totals(run, regrets, violations)
    reasons = filter(None, (bound.reason, untold_in_words(run), guarantee.reason))
    unique = tuple(dict.fromkeys(reasons))
    certificate = Certificate(tuple(checks), regrets, violations, unique, guards)
    object.__setattr__(certificate, "run", run)
    return certificate


def _own_checks(run: Run, guards: Sequence[capabilities.Guard]) -> Iterator[CertificateCheck]:
    share = run.learner.fields().get("calls_per_round")
    if share is not None and run.rounds:
        due, more = share * np.arange(1, run.rounds + 1), ""
        if run.stream.unavailable is not None:  # being feasible comes first
            due = due + np.cumsum([one is not None for one in run.stream.unavailable])
            more = ", and one more in a round with entries that are out"
        over = float((np.cumsum(run.calls) - due).max())
        law = f"oracle calls stay within {share:g} per round at all times{more}"
        yield CertificateCheck("calls", law, over, over, 1e-6 * max(1.0, share))
    if seen := [(g.left - g.right, g.name) for g in guards if g.left is not None]:
        over, worst = max(seen, key=lambda each: math.inf if math.isnan(each[0]) else each[0])
        size = max(abs(guard.left or 0.0) + abs(guard.right) for guard in guards)
        size = float(np.abs(run.losses).sum()) + (size if math.isfinite(size) else 0.0)
        law = f"the run loses to each member, {worst} first, at most what its guard says"
        yield CertificateCheck("guards", law, over, over, rounding(run) * size)


def rounding(run: Run) -> float:
    return SUMS * arrays.eps_of(run.learner.K.center)


def _guarantee(run: Run) -> base.Bound:
    horizon = run.learner.fields().get("horizon")
    curved = any(part.exp_concavity is not None for part in leaves(run.stream.losses))
    reasons = {
        run.bound.reason: run.unseen or (run.comparator and run.comparator.feasible is False),
        IN_ORDER: run.stream.late or run.stream.played is not None,
        ALL_AVAILABLE: any(run.stream.unavailable or ()),
        BY_GRADIENTS: run.experts and curved,
        f"The guarantee is for {horizon} rounds.": horizon is not None and run.rounds > horizon,
    }
    if missing := [reason for reason, applies in reasons.items() if applies]:
        return base.Bound(None, None, missing[0])
    if capabilities.is_per_constraint(run.learner):
        return run.learner.guarantee(limits=len(run.limit_names))  # type: ignore[call-arg]
    return run.learner.guarantee()


def _totals(run: Run, regret: Total, violation: Total) -> Iterator[CertificateCheck]:
    breaches, denied = float(run.violations.sum()), violation
    feasible = run.comparator is not None and run.comparator.feasible is True
    if feasible and run.bound.violation is None and run.bound.reason == HOPELESS:
        denied = violation._replace(bound=0.0)  # it denies a point that satisfies every constraint
    ends = regret.measured or (-math.inf, math.inf)
    least, slack = breaches if feasible else -math.inf, feasibility_slack(run, run.rounds)
    eps, losses = rounding(run), float(np.abs(run.losses).sum())
    for name, what in (("bound", "measured bound"), ("guarantee", "guarantee")):
        for which, total, between, more in (
            ("regret", regret, ends, eps * losses),
            ("violation", denied, (least, breaches), slack + eps * breaches),
        ):
            law = f"the {which} is within its {what}"
            yield from within(f"{which} {name}", law, between, getattr(total, name), more, eps)
    for which, total in (("regret", regret), ("violation", violation)):
        if total.bound is not None:
            name, both = f"{which} bound below guarantee", (total.bound, total.bound)
            law = f"the measured bound on the {which} is within the guarantee"
            yield from within(name, law, both, total.guarantee, 0.0, _ROUNDING)
    if known := [(one.violation - one.bound, one) for one in run.limits if one.bound is not None]:
        over, worst = max(known, key=lambda each: each[0])
        size = max(one.violation + (one.bound or 0.0) for _, one in known)
        law = f"each limit, {worst.name} first, is broken within its measured bound"
        ends = over if feasible else -math.inf, over
        yield CertificateCheck("limits", law, *ends, slack + eps * size)


def within(
    name: str, law: str, ends: tuple[float, float], most: float | None, slack: float, eps: float
) -> Iterator[CertificateCheck]:
    """The check that a number between these ends is at most `most`, if there is such a bound, up to
    rounding.
    """
    if most is not None:
        yield CertificateCheck(name, law, *ends, most + slack + eps * abs(most))


def feasibility_slack(run: Run, rounds: int) -> float:
    """What may be broken of constraints that are kept in so many rounds: a comparator keeps them up
    to 1e-9 of their size, not better.
    """
    constraints = run.stream.constraints
    if rounds == 0 or not isinstance(constraints, batch.PiecewiseLinear):
        return 0.0
    share = max(FEASIBILITY_TOLERANCE, 100 * arrays.eps_of(run.learner.K.center))
    return rounds * share * float(np.abs(constraints.offsets()).max())
