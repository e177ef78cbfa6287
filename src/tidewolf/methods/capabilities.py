"""What a learner may be able to do beside start, act, update: one small class per capability.

    UsesInfo            side information before a round, entries that are out of service
    LateFeedback        feedback late, in any order, never, or of other points than it decided
    Migrates            continues over a changed set, or with other settings
    WeighsConstraints   each constraint of a round has a weight and a bound of its own
    MixesExperts        experts with proposals, weights and guards
    Explores            plays another point in each round of a block and sees values alone
    ChoosesFeedback     what it reads depends on the losses
    Commits             learning and committing the next round are two steps
    BoundsParts         has measured bounds for a part of the rounds
    Diagnosed           slopes, multipliers, projections and running numbers of a state

A learner has a capability if it inherits the class or has all of its methods. The functions below
ask for one, with what holds for learners without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tidewolf.core import arguments, arrays, batch, errors, feedback, oracle, round_info
from tidewolf.core.types import Array, Floats

if TYPE_CHECKING:
    from tidewolf.methods.base import Bound, Learner, Record


class Capability(ABC):  # noqa: B024  each capability has its own
    """Abstract: `isinstance` asks whether a class has all public methods of a capability."""

    @classmethod
    def __subclasshook__(cls, kind: type) -> Any:
        if Capability not in cls.__bases__:
            return NotImplemented
        has = {name for each in kind.__mro__ for name in vars(each)}
        return has.issuperset(name for name in vars(cls) if not name.startswith("_"))


class UsesInfo(Capability):
    """Uses side information before a round, and leaves out entries that are unavailable."""

    @abstractmethod
    def with_info(self, state: Any, info: round_info.RoundInfo) -> Any:
        """The state that knows this before its next round, in place of what it knew before. Such a
        learner plays one round at a time.
        """


class LateFeedback(Capability):
    """Takes feedback late, in any order, never, or of other points than it decided."""

    @abstractmethod
    def defer(self, state: Any) -> Any:
        """The state after the next round was decided, at `act(state)`; its feedback comes later."""

    @abstractmethod
    def on_feedback(self, state: Any, arrivals: Sequence[feedback.Arrival]) -> Any:
        """The state after feedback on rounds that were deferred, or on the next one, in any order,
        also of other points than were decided. Feedback that comes together is given together. Side
        information of the next round is to be given again, unless that round was deferred.
        """

    @abstractmethod
    def drop(self, state: Any, rounds: Sequence[int]) -> Any:
        """The state that waits no more for feedback on these rounds, which were deferred."""


class Migrates(Capability):
    """Continues over a changed set, or with other settings."""

    @abstractmethod
    def migrated(self, state: Any, old: Learner[Any]) -> Any:
        """The state that continues `state` of the learner `old`, over a set that changed or with
        other settings: what still exists is kept by name.
        """


class LimitBound(NamedTuple):
    """What is known of one of the constraints of a round.

    Parameters
    ----------
    name : str
        What it is called.
    violation : float
        Its total violation.
    bound : float, optional
        The most that theory allows of it; None if it says nothing.
    """

    name: str
    violation: float
    bound: float | None


class WeighsConstraints(Capability):
    """May have a weight and a bound of its own for each constraint of a round. With
    `per_constraint` its feedback has each constraint of a round by itself.
    """

    per_constraint: bool = False

    @abstractmethod
    def limit_bounds(self, record: Record) -> tuple[LimitBound, ...]:
        """The violation and the bound of each constraint for the decisions; none if constraints
        have no weights of their own. `Run.limits` has them for what was played.
        """


class Expert(NamedTuple):
    """One of the experts whose proposals a learner mixes.

    Parameters
    ----------
    name : str
        What it is called.
    kind : str
        "descent", "context" or "advice".
    weight : float
        Its weight in the last round.
    mean_weight : float
        Its mean weight over the rounds so far.
    guard : float
        The most that the run loses to it, in loss plus weighted violation: A_i/V, in units of f.
    loss : float, optional
        What it would have lost in all. None: the functions were not seen.
    violation : float, optional
        Its total violation, likewise.
    rounds : int
        In how many rounds it had a proposal.
    solves : int, default 0
        Linear programs solved for it.
    calls : int, default 0
        Oracle calls made for it.
    outside : float, default 0.0
        The largest distance of its points from the set, before they were brought in.
    run_loss : float, optional
        What the run lost in the same rounds. None: the functions were not seen.
    run_violation : float, optional
        What the run violated in the same rounds, likewise.
    """

    name: str
    kind: str
    weight: float
    mean_weight: float
    guard: float
    loss: float | None
    violation: float | None
    rounds: int
    solves: int = 0
    calls: int = 0
    outside: float = 0.0
    run_loss: float | None = None
    run_violation: float | None = None


class Proposal(NamedTuple):
    """What an expert proposes for the next round."""

    who: str  # in words
    weight: float  # its share of the decision
    point: Array | None  # None if it is absent


class Guard(NamedTuple):
    """The guard inequality of an expert over its rounds, in units of the loss:
    sum (f(x) - f(z)) + sum w/V (g^+(x) - g^+(z)) <= A/V.

    Parameters
    ----------
    name : str
        What the expert is called.
    left : float, optional
        The left side. None: the functions were not seen at the expert's points.
    right : float
        The right side.
    """

    name: str
    left: float | None
    right: float


class MixesExperts(Capability):
    """Mixes the proposals of experts."""

    @abstractmethod
    def experts_of(self, state: Any) -> tuple[Expert, ...]:
        """Its experts, with their totals. Their weights in the last round are its `measures`."""

    @abstractmethod
    def proposals(self, state: Any, number: int | None = None) -> tuple[Proposal, ...]:
        """What each expert proposes for the next round, or for a pending one: the decision is their
        weighted sum, unless something holds it back.
        """

    @abstractmethod
    def guards(self, state: Any) -> tuple[Guard, ...]:
        """The guard inequality of each expert, as far as it was measured."""

    @abstractmethod
    def adviser_in_words(self, name: str) -> str:
        """What an adviser is called in sentences, by the name of its first expert."""


class Explores(Capability):
    """Plays another point in each round of a block. Bounds and guarantees of such a learner hold on
    average over its own random directions: they are shown, and no run is judged by them.
    """

    @abstractmethod
    def acts(self, state: Any, k: int) -> Array:
        """The next k points, as (k, *shape); k at most `rounds_left(state)`."""


class ChoosesFeedback(Capability):
    """Reads feedback that depends on the losses."""

    @abstractmethod
    def reads(self, losses: batch.Batch) -> type[feedback.Feedback]:
        """The feedback that it reads of rounds with such losses."""

    @abstractmethod
    def rounds_at_once(self, state: Any) -> int:
        """How many rounds that were played at one point an update takes at most."""


class Commits(Capability):
    """Commits the next round (asks advisers that do not wait for side information) apart from
    learning: the session commits under a deadline.
    """

    @abstractmethod
    def begin(self) -> Any:
        """The state before the first round, with nothing committed; `start` commits it."""

    @abstractmethod
    def committed(self, state: Any) -> Any:
        """The state with the next round committed; itself if it is."""

    @abstractmethod
    def is_committed(self, state: Any) -> bool:
        """Whether the next round is."""

    @abstractmethod
    def advance(self, state: Any) -> Any:
        """As `defer`, with nothing committed for the round after it."""

    @abstractmethod
    def learned(self, state: Any, arrival: feedback.Arrival) -> Any:
        """The state after feedback on one round, with nothing committed for the next one."""


class BoundsParts(Capability):
    """Has measured bounds for a part of the rounds."""

    @abstractmethod
    def bound_between(self, record: Record, start: int, stop: int) -> Bound:
        """The measured bound for rounds start to stop alone, against the best point for these
        rounds: from differences of its `measures`.
        """


class ProjectionRecord(NamedTuple):
    """The last approximately feasible projection, for checks: from `before_projection`,
    a member x and y no farther from any member.
    """

    over: oracle.HasLMO  # the set that was projected on
    x: Array
    before_projection: Array
    y: Array
    tolerance2: float  # aimed-at |x - y|^2; a larger one must have used up its calls
    calls_left: float


class Diagnosed(Capability):
    """Has numbers of a state for certificates and explanations; None if a number is not known."""

    def slopes(self, state: Any) -> tuple[float, float] | None:
        """The largest slopes of losses and constraints known so far, given or met."""
        return None

    def limit_price(self, state: Any) -> float | None:
        """The multiplier of the constraint after the last feedback, in units of the loss; of
        several the largest.
        """
        return None

    def limit_prices(self, state: Any) -> Floats | None:
        """The multiplier of each constraint, if each has its own."""
        return None

    def last_projection(self, state: Any) -> ProjectionRecord | None:
        """The projection that this state came from."""
        return None

    def measures(self, state: Any) -> tuple[float, ...]:
        """Running numbers that a run keeps for every update."""
        return ()


NOTHING_KNOWN = Diagnosed()


def diagnosed(learner: Learner[Any]) -> Diagnosed:
    return learner if isinstance(learner, Diagnosed) else NOTHING_KNOWN


def with_info(learner: Learner[Any], state: Any, info: round_info.RoundInfo | None) -> Any:
    """The state that knows this before its next round. A learner that does not use side information
    ignores it, but for entries that are out: these it refuses.
    """
    if info is None:
        return state
    if isinstance(learner, UsesInfo):
        return learner.with_info(state, info)
    if info.unavailable is not None:
        raise errors.NotSupported(
            f"{type(learner).__name__} cannot leave out {arguments.shown(info.unavailable)}: "
            "Ensemble, LyapunovDescent, PrimalDual and baselines.Resolve play around unavailable "
            "entries."
        )
    return state


def late_feedback(learner: Learner[Any]) -> LateFeedback:
    if isinstance(learner, LateFeedback):
        return learner
    raise errors.NotSupported(
        f"{type(learner).__name__} takes feedback in order, of the points that it decided: none "
        "that is late, and none of other points played. Ensemble and the learners that need "
        "FirstOrder feedback take both."
    )


def migrated(learner: Learner[Any], state: Any, old: Learner[Any]) -> Any:
    if isinstance(learner, Migrates):
        return learner.migrated(state, old)
    raise errors.NotSupported(
        f"{type(learner).__name__} cannot continue from the state of another learner, over a "
        "changed set or with other settings; Ensemble and LyapunovDescent can."
    )


def beginning(learner: Learner[Any]) -> Any:
    return learner.begin() if isinstance(learner, Commits) else learner.start()


def committed(learner: Learner[Any], state: Any) -> Any:
    return learner.committed(state) if isinstance(learner, Commits) else state


def is_committed(learner: Learner[Any], state: Any) -> bool:
    return not isinstance(learner, Commits) or learner.is_committed(state)


def kernel_of(learner: Learner[Any]) -> Any:
    """The rounds of a learner in one kernel, as `methods.compiled_rounds.CompiledRounds`; None if
    it has none.
    """
    return getattr(learner, "compiled", None)  # as fast as can be: live rounds ask each time


def experts_of(learner: Learner[Any], state: Any) -> tuple[Expert, ...]:
    return learner.experts_of(state) if isinstance(learner, MixesExperts) else ()


def adviser_in_words(learner: Learner[Any], name: str) -> str:
    return learner.adviser_in_words(name) if isinstance(learner, MixesExperts) else name


def feedback_read(learner: Learner[Any], losses: batch.Batch) -> type[feedback.Feedback]:
    return learner.reads(losses) if isinstance(learner, ChoosesFeedback) else learner.needs


def rounds_at_once(learner: Learner[Any], state: Any) -> int:
    if isinstance(learner, ChoosesFeedback):
        return learner.rounds_at_once(state)
    return learner.rounds_left(state)


def acts(learner: Learner[Any], state: Any, k: int) -> Array:
    """The next k points of a learner, as (k, *shape): the same k times unless it explores."""
    if isinstance(learner, Explores):
        return learner.acts(state, k)
    x = learner.act(state)
    return arrays.namespace(x).broadcast_to(x, (k, *x.shape))


def is_per_constraint(learner: Learner[Any]) -> bool:
    return isinstance(learner, WeighsConstraints) and learner.per_constraint
