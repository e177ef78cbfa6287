"""A learner: frozen settings, explicit state, pure steps.

    state = start();   state = informed(state, known);   x = act(state)
        state = update(state, seen);   ...

The loop (`tidewolf.play`) owns time: it says what is known before a round, where something is,
plays `act(state)` for up to `rounds_left(state)` rounds, reveals what the learner `reads` of them,
and hands it over. One code path serves a single live round and a vectorised block.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, ClassVar, Generic, NamedTuple, Never, Protocol, TypeVar

from tidewolf.core import checkpoint
from tidewolf.core.arguments import shown
from tidewolf.core.arrays import as_count, namespace
from tidewolf.core.batch import Batch
from tidewolf.core.conforming import conforming, is_member
from tidewolf.core.errors import (
    BrokenFile,
    InvalidInput,
    NotSupported,
    OtherVersions,
    WrongType,
)
from tidewolf.core.feedback import Arrival, Bandit, Feedback, FirstOrder, FullInformation
from tidewolf.core.oracle import HasLMO, as_set
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.core.values import Value, fingerprint


class Progress(Protocol):
    """What every state tells the loop."""

    @property
    def t(self) -> int:
        """Rounds seen so far."""

    @property
    def calls(self) -> int:
        """Oracle calls made so far."""

    @property
    def distance(self) -> float:
        """||x - y|| between the next point to play and its infeasible companion; 0 where there is
        none.
        """


S = TypeVar("S", bound=Progress)


class Bound(NamedTuple):
    """The most that theory allows of regret and violation; None, with the reason, where it says
    nothing.

    A measured bound (`Learner.bound`) takes what the run measured; a promise (`Learner.guarantee`)
    is known before the first round.
    """

    regret: float | None
    violation: float | None
    reason: str = ""


NEEDS_SLOPES = Bound(
    None,
    None,
    "A promise needs horizon, loss_lipschitz and constraint_lipschitz; without them bounds are "
    "measured.",
)
"""The reason of a learner without them."""


class LimitBound(NamedTuple):
    """What is known of one of a round's limits."""

    name: str
    violation: float
    """by how much it was broken in all"""
    bound: float | None
    """the most that theory allows of it; None where it says nothing"""


class ProjectionRecord(NamedTuple):
    """The last approximately feasible projection, for checks: from `before_projection`,
    a member x and y no farther from any member.
    """

    over: HasLMO
    """the set that was projected on"""
    x: Array
    before_projection: Array
    y: Array
    tolerance2: float
    """aimed-at |x - y|^2; a larger one must have used up its calls"""
    calls_left: float


class Expert(NamedTuple):
    """One of those whose proposals a learner mixes."""

    name: str
    kind: str
    """"descent", "context" or "advice" """
    weight: float
    """in the last round"""
    mean_weight: float
    """over the rounds so far"""
    guard: float
    """the most that the run loses to it, A_i/V, in units of the loss"""
    loss: float | None
    """what it would have lost in all; None where the functions were not seen"""
    violation: float | None
    """its total violation, likewise"""
    rounds: int
    """in which it had a proposal"""
    solves: int = 0
    """linear programs solved for it"""
    calls: int = 0
    """oracle calls made for it"""
    outside: float = 0.0
    """the largest distance of its points from the set, before they were brought in"""
    run_loss: float | None = None
    """what the run lost in the same rounds; None where the functions were not seen"""
    run_violation: float | None = None


class Proposal(NamedTuple):
    """What a member proposes for the coming round."""

    who: str
    """the member, in words"""
    weight: float
    """its share of the decision"""
    point: Array | None
    """None where it is absent"""


class Guard(NamedTuple):
    """The guard inequality of a member over its rounds, in units of the loss:
    sum (f(x) - f(z)) + sum w/V (g^+(x) - g^+(z)) <= A/V.
    """

    name: str
    left: float | None
    """None where the functions were not seen at the member's points"""
    right: float


@dataclass(frozen=True)
class Record:
    """What a run measured, round by round, and where it ended."""

    losses: Floats
    violations: Floats
    calls: Int64s
    distances: Floats
    final_state: Any
    ends: Int64s
    """after how many rounds each update came"""
    measures: Floats
    """the learner's running numbers after each update, one row each; see `Learner.measures`"""

    @property
    def rounds(self) -> int:
        return len(self.losses)

    @property
    def limit_names(self) -> tuple[str, ...]:
        """What the limits of a round are called; empty where that is not known."""
        return ()


def refuse_state(learner: Learner[Any], state: Any) -> Never:
    """Say that a state is not one of the learner's own."""
    raise WrongType(
        f"{type(learner).__name__} continues from a state of its own, as start() and update() give "
        f"it, not from {shown(state)}."
    )


def _state(learner: Learner[Any], state: Any) -> Any:
    if not isinstance(state, learner.state_type):
        refuse_state(learner, state)
    return state


def _info(learner: Learner[Any], info: Any) -> RoundInfo:
    if not isinstance(info, RoundInfo):
        raise WrongType(f"Expected a RoundInfo, such as RoundInfo(time=t), not {shown(info)}.")
    return info


def _arrivals(learner: Learner[Any], arrivals: Any) -> Sequence[Arrival]:
    if not isinstance(arrivals, list | tuple) or not all(type(a) is Arrival for a in arrivals):
        raise WrongType(
            "Expected a list of Arrival(round, feedback), those that come together, not "
            f"{shown(arrivals)}."
        )
    return arrivals


def _numbers(learner: Learner[Any], rounds: Any) -> list[int]:
    if not isinstance(rounds, list | tuple):
        raise WrongType(f"Rounds to drop are a list of numbers, not {shown(rounds)}.")
    return [as_count(one, "A round to drop", least=0) for one in rounds]


def _losses(learner: Learner[Any], losses: Any) -> Batch:
    if not isinstance(losses, Batch):
        raise WrongType(
            f"Losses are a batch of functions such as functions.Linear(C), not {shown(losses)}."
        )
    return losses


def _record(learner: Learner[Any], record: Any) -> Record:
    if not isinstance(record, Record) or not isinstance(record.final_state, learner.state_type):
        raise WrongType(
            f"{type(learner).__name__} has bounds for a run of its own, as tidewolf.run gives it, "
            f"not for {shown(record)}."
        )
    return record


_CHECKS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        (
            *("act", "acts", "advance", "committed", "defer", "experts_of"),
            *("guards", "is_committed", "last_projection", "learned", "limit_price"),
            *("limit_prices", "measures", "notes", "proposals", "rounds_at_once", "rounds_left"),
            *("save", "slopes", "solves", "update"),
        ),
        (_state,),
    ),
    "on_feedback": (_state, _arrivals),
    "drop": (_state, _numbers),
    "with_info": (_state, _info),
    "reads": (_losses,),
    **dict.fromkeys(("bound", "bound_between", "limit_bounds"), (_record,)),
}
"""What checks the arguments of each method, so that no subclass looks again."""


def _checked(name: str, method: Any) -> Any:
    checks = _CHECKS[name]

    @wraps(method)
    def checked(self: Learner[Any], first: Any, *rest: Any, **named: Any) -> Any:
        first = checks[0](self, first)
        if len(checks) > 1 and rest:
            rest = checks[1](self, rest[0]), *rest[1:]
        return method(self, first, *rest, **named)

    @wraps(method)
    def acting(self: Learner[Any], state: Any, *rest: Any, info: Any = None) -> Any:
        count = 1 if name == "acts" else 0  # how many points, which side information follows
        info = rest[count] if len(rest) > count else info
        state = _state(self, state)
        state = state if info is None else self.with_info(state, info)
        return method(self, state, *rest[:count])

    @wraps(method)
    def bounding(self: Learner[Any], record: Any) -> Any:
        return for_what_was_played(method(self, _record(self, record)), record.final_state)

    @wraps(method)
    def of_a_part(self: Learner[Any], record: Any, start: Any, stop: Any) -> Any:
        return method(self, _record(self, record), *_part(record, start, stop))

    special = {"act": acting, "acts": acting, "bound": bounding, "bound_between": of_a_part}
    found: Any = special.get(name, checked)
    found.checks_its_state = True
    return found


def for_what_was_played(bound: Bound, state: Any) -> Bound:
    """A bound for the decisions as one for what was played in their place, where the functions were
    seen: both differ by what is measured (methods/late.py).
    """
    o = getattr(state, "overrides", None)
    if o is None or not o.valued:
        return bound
    regret, violation = bound.regret, bound.violation
    if regret is not None:
        regret += o.loss - o.own_loss
    if violation is not None:
        violation = max(0.0, violation + o.violation - o.own_violation)
    return Bound(regret, violation, bound.reason)


def bound_so_far(learner: Learner[Any], state: Any) -> Bound:
    """What is proved of the rounds before a state."""
    of_state = getattr(learner, "bound_of", None)
    if of_state is None:
        raise NotSupported(
            f"{type(learner).__name__} has bounds for a whole run, as tidewolf.run gives it, and "
            "none while rounds come; Ensemble and LyapunovDescent have both."
        )
    return for_what_was_played(of_state(state), state)


def _on_a_set(method: Any) -> Any:
    @wraps(method.__func__)
    def checked(cls: type[Learner[Any]], K: HasLMO, horizon: int) -> Any:
        return method.__func__(
            cls, as_set(K, f"Examples of {cls.__name__}"), as_count(horizon, "The horizon")
        )

    return classmethod(checked)


def _part(record: Record, start: int, stop: int) -> tuple[int, int]:
    start, stop = (
        as_count(start, "The first round", least=0),
        as_count(stop, "The round after the last"),
    )
    if not start < stop <= record.rounds:
        raise InvalidInput(
            f"Rounds {start} to {stop} were asked about; the run has {record.rounds}, and a part "
            "of it at least one."
        )
    return start, stop


def _check(cls: type) -> None:
    for name in _CHECKS:
        method = getattr(cls, name, None)  # also one that comes from a class that is no learner
        if method is not None and not getattr(method, "checks_its_state", False):
            setattr(cls, name, _checked(name, method))


class Learner(Value, ABC, Generic[S]):
    """Abstract: subclasses are frozen dataclasses with their set K among the fields."""

    K: HasLMO
    needs: ClassVar[type[FullInformation] | type[FirstOrder] | type[Bandit]]
    state_type: ClassVar[type]
    per_constraint: bool = False
    """whether its feedback has each of a round's constraints by itself"""
    on_average: ClassVar[bool] = False
    """whether bounds and promises hold only on average over the learner's own dice: then they are
    shown, and no run is judged by them
    """
    anytime: ClassVar[bool] = False
    """whether it continues past its horizon as though there were none; a learner that restarts
    there reports it in a note
    """
    accuracy: ClassVar[float] = 0.0
    """how far apart, as a share of the radius, two answers to the same step may be where a step is
    solved to an accuracy
    """
    exponents: ClassVar[tuple[float, float] | None] = None
    """the powers of T that theory promises for regret and violation, up to logarithms; None where
    it promises none
    """

    def __init_subclass__(cls) -> None:
        """Whose state, and whose record, a method is given is checked here, once for all
        learners.
        """
        super().__init_subclass__()
        _check(cls)
        if isinstance(cls.__dict__.get("examples"), classmethod):
            cls.examples = _on_a_set(cls.__dict__["examples"])  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        """Without what is compiled: a copy compiles again."""
        return {k: v for k, v in vars(self).items() if k != "compiled"}

    @property
    def compiled(self) -> Any:
        """Its rounds in one kernel, as `methods.compiled_rounds.CompiledRounds`; None where there
        is none.
        """
        return None

    @abstractmethod
    def start(self) -> S:
        """The state before the first round."""

    def begin(self) -> S:
        """The same, with nothing settled for that round, where the learner tells these apart."""
        return self.start()

    @abstractmethod
    def act(self, state: S, info: RoundInfo | None = None) -> Array:
        """The point to play next, read-only; with what is known before the round, that of
        `with_info(state, info)`, which is taken in before a learner's own `act` is asked.
        """

    def acts(self, state: S, k: int, info: RoundInfo | None = None) -> Array:
        """The next k points, as (k, *shape); k at most `rounds_left(state)`."""
        k = as_count(k, "How many points are asked for", least=0)
        if not 1 <= k <= self.rounds_left(state):
            raise InvalidInput(
                f"The next {k} points were asked for; 1 to {self.rounds_left(state)} are settled "
                "before the next update."
            )
        x = self.act(state)
        return namespace(x).broadcast_to(x, (k, *x.shape))

    def with_info(self, state: S, info: RoundInfo) -> S:
        """The state that knows this before its next round, in place of what it knew before; the
        state as it is, where the learner has no use for it. A learner that has one settles one
        round at a time. Entries that are out are never ignored: a learner that cannot leave them
        out refuses them.
        """
        if info.unavailable is not None:
            raise NotSupported(
                f"{type(self).__name__} cannot leave out {shown(info.unavailable)}: Ensemble, "
                "LyapunovDescent, PrimalDual and rivals.Resolve play around entries that are out."
            )
        return state

    def reads(self, losses: Batch) -> type[FullInformation] | type[FirstOrder] | type[Bandit]:
        """The feedback that it reads of rounds with such losses."""
        return self.needs

    @property
    def takes(self) -> tuple[type[Feedback], ...]:
        """What `update` can go on from: what it needs, and what it may read instead."""
        return (self.needs,)

    @abstractmethod
    def rounds_left(self, state: S) -> int:
        """How many rounds `update` takes at most before the point may change."""

    def rounds_at_once(self, state: S) -> int:
        """How many rounds that were played at one point an update takes at most: `rounds_left`,
        where the learner does not take more.
        """
        return self.rounds_left(state)

    @abstractmethod
    def update(self, state: S, feedback: Any) -> S:
        """The state after these rounds. Bad feedback raises; the old state stays good."""

    def defer(self, state: S) -> S:
        """The coming round is decided, at `act(state)`, and its feedback comes later: the state
        that the next round is decided from.
        """
        raise self._in_order()

    def on_feedback(self, state: S, arrivals: Sequence[Arrival]) -> S:
        """The state after feedback on rounds that were `decided`, or on the coming one, in any
        order; also of other points than were decided. Those that come together are given together.
        What was known of the coming round is to be told again, unless it was `decided`.
        """
        raise self._in_order()

    def drop(self, state: S, rounds: Sequence[int]) -> S:
        """The state that waits no more for feedback on these rounds, which were `decided`."""
        raise self._in_order()

    def migrated(self, state: S, old: Learner[Any]) -> S:
        """The state that continues `state` of the learner `old`, over a set that changed or
        with other settings: what still exists is kept by name, and bounds are settled.
        """
        raise NotSupported(
            f"{type(self).__name__} cannot go on from the state of another learner, over a changed "
            "set or with other settings; Ensemble and LyapunovDescent can."
        )

    def learned(self, state: S, arrival: Arrival) -> S:
        """The state after feedback on one round, with nothing settled for the coming one, where
        the learner tells these apart: `committed` does the rest.
        """
        if arrival.played is None and not getattr(state, "pending", ()):
            return self.update(state, arrival.feedback)
        return self.on_feedback(state, (arrival,))

    def advance(self, state: S) -> S:
        """As `decided`, with nothing settled for the round after it."""
        return self.defer(state)

    def committed(self, state: S) -> S:
        """The state that decides the coming round: all advisers that do not wait for side
        information are asked, unless they were.
        """
        return state

    def is_committed(self, state: S) -> bool:
        """Whether it is."""
        return True

    def _in_order(self) -> NotSupported:
        return NotSupported(
            f"{type(self).__name__} takes feedback in order, of the points that it decided: none "
            "that is late, and none of what was played in their place. Ensemble and the learners "
            "that need FirstOrder feedback take both."
        )

    @abstractmethod
    def bound(self, record: Record) -> Bound:
        """The measured bound: what theory allows this run, given what it measured."""

    def limit_bounds(self, record: Record) -> tuple[LimitBound, ...]:
        """The violation and the bound of each limit for the decisions, one row each; none if the
        learner does not tell limits apart. `Run.limits` has them for what was played.
        """
        return ()

    @classmethod
    @abstractmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        """Settings worth testing on a set, for the laws of `tidewolf.testing`."""

    def guarantee(self) -> Bound:
        """What the theory knows before the first round of a run of as many rounds as the learner
        was made for.
        """
        return Bound(
            None,
            None,
            f"{type(self).__name__} promises nothing beforehand: its bounds are measured.",
        )

    def slopes(self, state: S) -> tuple[float, float] | None:
        """The largest slopes of losses and constraints known so far, given or met; None where
        nothing is known of them.
        """
        return None

    def last_projection(self, state: S) -> ProjectionRecord | None:
        """The projection this state came from; None where there is none to check."""
        return None

    def measures(self, state: S) -> tuple[float, ...]:
        """Running numbers that `bound_between` takes differences of; a run keeps them for every
        update.
        """
        return ()

    def bound_between(self, record: Record, start: int, stop: int) -> Bound:
        """The measured bound for rounds start to stop alone, against the best point for these
        rounds.
        """
        return Bound(
            None, None, f"{type(self).__name__} has no measured bound for a part of the rounds."
        )

    def experts_of(self, state: S) -> tuple[Expert, ...]:
        """Those whose proposals it mixes, with what it makes of each; none where it has none. Their
        weights in the round just played are then its `measures`.
        """
        return ()

    def proposals(self, state: S, number: int | None = None) -> tuple[Proposal, ...]:
        """What each of its members proposes for the coming round, or for a pending one: the
        decision is their weighted sum, unless something holds it back.
        """
        return ()

    def adviser_in_words(self, name: str) -> str:
        """What an adviser is called in sentences, by the name of its first member."""
        return name

    def guards(self, state: S) -> tuple[Guard, ...]:
        """The guard inequality of each member, as far as it was measured."""
        return ()

    def limit_price(self, state: S) -> float | None:
        """What a unit of violation weighs after the last feedback, in units of the loss; None where
        no one number says it. With a weight for each limit, the largest.
        """
        return None

    def limit_prices(self, state: S) -> Floats | None:
        """The same for each limit; None where they have no weights of their own."""
        return None

    def solves(self, state: S) -> int:
        """Linear programs solved so far."""
        return 0

    def notes(self, state: S) -> tuple[str, ...]:
        """Sentences a reader of the run should know, such as a horizon that was passed."""
        return ()

    def save(self, state: S) -> bytes:
        """The state as bytes that `load` continues from."""
        return checkpoint.dump(state, settings=self._fingerprint, learner=type(self).__name__)

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self)

    def load(self, data: bytes, *, source: str = "The saved state") -> S:
        """A saved state again; refused when it was saved under other settings, or is none.

        `source` is what a warning calls it if it was written on another processor, or with other
        versions of Python or of the packages that compute.
        """
        if not isinstance(data, bytes):
            raise WrongType(
                f"A saved state is bytes, as `save` gives them, not a {type(data).__name__}."
            )
        saved = checkpoint.load(data, settings=self._fingerprint, reference=self.K.center)
        try:
            state: S = conforming(saved.fields, self.state_type, self.begin(), self.K)
            self._require_whole(state)
        except Exception as error:  # hand-made content breaks in every way
            who, wrong = type(self).__name__, checkpoint.half_sentence(error)
            raise BrokenFile(
                f"The saved state has a right checksum and is no state of {who}: {wrong}."
            ) from None
        if other := checkpoint.versions_elsewhere(saved.writer):
            warnings.warn(
                f"{source} was written with {other}. It continues, and its numbers may differ from "
                "those of the writer by rounding.",
                OtherVersions,
                stacklevel=2,
            )
        return state

    def _require_whole(self, state: S) -> None:
        """Refuse, by a ValueError, a state that the next round could not go on from: the point it
        plays is a member of the set.
        """
        K = self.K
        if not self.rounds_left(state) >= 1:
            raise ValueError("no round is left before its next update")
        if self.is_committed(state) and not is_member(K, self.act(state)):
            raise ValueError("the point it plays is no member of the set")


_check(Learner)
