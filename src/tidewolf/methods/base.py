"""A learner: frozen settings, explicit state, pure steps.

    state = start();   x = act(state);   state = update(state, feedback);   ...

The loop (`tidewolf.play`) owns time: it plays `act(state)` for up to `rounds_left(state)` rounds,
reveals what the learner `needs` of them, and hands it over. One code path serves a single live
round and a vectorised block. What else a learner may be able to do (side information, late
feedback, another set, ...) is in methods/capabilities.py.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, wraps
from inspect import signature
from numbers import Integral
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from tidewolf.core import arguments, arrays, checkpoint, errors, oracle, round_info, sparse, values
from tidewolf.core.conforming import conforming, is_member
from tidewolf.core.feedback import Arrival, Bandit, FirstOrder, FullInformation
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.methods.capabilities import beginning, is_committed
from tidewolf.sets import spectra


class Progress(Protocol):
    """What every state tells the loop."""

    @property
    def t(self) -> int:
        """Rounds observed so far: 0 in `start()`. In `update(state, feedback)` it counts the rounds
        before this feedback, and the state that it returns counts them all. In `step(state, block)`
        of `EveryRound` and `BlockLearner` it counts the rounds of the block already: 1 in the first
        step of a learner that steps every round.
        """

    @property
    def calls(self) -> int:
        """Oracle calls made so far."""

    @property
    def distance(self) -> float:
        """||x - y|| between the next point to play and its infeasible iterate; 0 if there is
        none.
        """


S = TypeVar("S", bound=Progress)


class Bound(NamedTuple):
    """Upper bounds on regret and violation; None, with the reason, if there is none.

    A measured bound (`Learner.bound`) takes what the run measured; a guarantee
    (`Learner.guarantee`) is known before the first round.
    """

    regret: float | None = None
    violation: float | None = None
    reason: str = ""


# The reason of a learner without them.
NEEDS_SLOPES = Bound(
    reason="A guarantee needs horizon, loss_lipschitz and constraint_lipschitz; without them "
    "bounds are measured."
)


@dataclass(frozen=True)
class Record:
    """What a run measured, round by round, and where it ended.

    Parameters
    ----------
    losses, violations : array
        The loss and the violation of each round.
    calls : array
        The oracle calls of each round.
    distances : array
        ||x - y|| of each round.
    final_state : NamedTuple
        The state after the last round.
    ends : array
        After how many rounds each update came.
    measures : array
        The learner's running numbers after each update, one row each; see `Diagnosed.measures`.
    """

    losses: Floats
    violations: Floats
    calls: Int64s
    distances: Floats
    final_state: Any
    ends: Int64s
    measures: Floats

    @property
    def rounds(self) -> int:
        return len(self.losses)

    @property
    def limit_names(self) -> tuple[str, ...]:
        """What the limits of a round are called; empty if that is not known."""
        return ()


def refuse_state(learner: "Learner[Any]", value: Any, kind: str = "state") -> None:
    expected, holds = EXPECTED[kind]
    if not holds(learner, value):
        who = type(learner).__name__
        raise errors.WrongType(f"{who} expects {expected}, not {arguments.shown(value)}.")


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, kind) for one in value)


# Arguments by their names: what is expected, in words and as a test.
EXPECTED: "dict[str, tuple[str, Callable[[Learner[Any], Any], bool]]]" = {
    "state": (
        "a state of its own, as start() and update() give it",
        lambda learner, value: isinstance(value, learner.state_type),
    ),
    "info": (
        "a RoundInfo, such as RoundInfo(time=t)",
        lambda _, value: isinstance(value, round_info.RoundInfo),
    ),
    "arrivals": (
        "a list of Arrival(round, feedback), those that come together",
        lambda _, value: _is_list(value, Arrival),
    ),
    "rounds": (
        "the rounds to drop as a list of whole numbers",
        lambda _, value: _is_list(value, Integral),
    ),
    "record": (
        "a run of its own, as tidewolf.run gives it",
        lambda learner, value: (
            isinstance(value, Record) and isinstance(value.final_state, learner.state_type)
        ),
    ),
}
_OF_A_STATE = ("act", "acts", "defer", "experts_of", "notes", "rounds_left", "save", "update")
# The first arguments of the methods, of learners and capabilities, that users may call, whatever a
# subclass calls them: they are checked here, and no subclass checks again.
CHECKED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_A_STATE, ("state",)),
    **dict.fromkeys(("bound", "bound_between", "limit_bounds"), ("record",)),
    "with_info": ("state", "info"),
    "on_feedback": ("state", "arrivals"),
    "drop": ("state", "rounds"),
}


def _checked(name: str, method: Any) -> Any:
    names = tuple(signature(method).parameters)[1:]
    kinds = dict(zip(names, CHECKED[name], strict=False))

    @wraps(method)
    def checked(self: Learner[Any], *given: Any, **named: Any) -> Any:
        for parameter, value in (*zip(names, given, strict=False), *named.items()):
            if parameter in kinds:
                refuse_state(self, value, kinds[parameter])
        found = method(self, *given, **named)
        if name == "bound":
            record: Record = given[0] if given else named["record"]
            return for_what_was_played(found, record.final_state)
        return found

    checked.checks_its_state = True  # type: ignore[attr-defined]
    return checked


def require_part(record: Record, start: Any, stop: Any) -> None:
    start = arrays.as_count(start, "The first round", least=0)
    stop = arrays.as_count(stop, "The round after the last")
    if not start < stop <= record.rounds:
        raise errors.InvalidInput(
            f"Rounds {start} to {stop} were asked about; the run has {record.rounds}, and a part "
            "of it at least one."
        )


def for_what_was_played(bound: Bound, state: Any) -> Bound:
    """A bound for the decisions as one for what was played in their place, if the functions were
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


def bound_so_far(learner: "Learner[Any]", state: Any) -> Bound:
    of_state = getattr(learner, "bound_of", None)
    if of_state is None:
        raise errors.NotSupported(
            f"{type(learner).__name__} has bounds for a whole run, as tidewolf.run gives it, and "
            "none while rounds come; Ensemble and LyapunovDescent have both."
        )
    bound = for_what_was_played(of_state(state), state)
    note = getattr(getattr(state, "costs", None), "note", "")
    return bound._replace(reason=f"{bound.reason} {note}".strip()) if note else bound


def _on_a_set(method: Any) -> Any:
    @wraps(method.__func__)
    def checked(cls: type[Learner[Any]], K: oracle.HasLMO, horizon: int) -> Any:
        return method.__func__(
            cls,
            oracle.as_set(K, f"Examples of {cls.__name__}"),
            arrays.as_count(horizon, "The horizon"),
        )

    return classmethod(checked)


def _check(cls: type) -> None:
    for name in CHECKED:
        method = getattr(cls, name, None)  # also one that comes from a class that is no learner
        if method is not None and not getattr(method, "checks_its_state", False):
            setattr(cls, name, _checked(name, method))


class Learner(values.Value, ABC, Generic[S]):
    """Abstract base of learners: a frozen dataclass of settings, among them K, the set that every
    played point belongs to. `needs` is the feedback that `update` takes.
    """

    K: oracle.HasLMO
    needs: ClassVar[type[FullInformation] | type[FirstOrder] | type[Bandit]]
    state_type: ClassVar[type]

    def __init_subclass__(cls) -> None:
        """Arguments are checked here, once for all learners."""
        super().__init_subclass__()
        _check(cls)
        if isinstance(cls.__dict__.get("examples"), classmethod):
            cls.examples = _on_a_set(cls.__dict__["examples"])  # type: ignore[method-assign]

    @abstractmethod
    def start(self) -> S:
        """The state before the first round."""

    @abstractmethod
    def act(self, state: S) -> Array:
        """The point to play next, read-only."""

    @abstractmethod
    def rounds_left(self, state: S) -> int:
        """How many rounds `update` takes at most before the point may change."""

    @abstractmethod
    def update(self, state: S, feedback: Any) -> S:
        """The state after these rounds, with their number added to its `t`. Bad feedback raises;
        the old state stays good.
        """

    @abstractmethod
    def bound(self, record: Record) -> Bound:
        """The measured bound: an upper bound on regret and violation of this run."""

    def guarantee(self) -> Bound:
        """What theory knows before the first round of a run of as many rounds as the learner was
        made for.
        """
        return Bound(
            reason=f"{type(self).__name__} guarantees nothing beforehand: its bounds are measured."
        )

    def notes(self, state: S) -> tuple[str, ...]:
        """Sentences a reader of the run should know, such as a horizon that was passed."""
        return ()

    @classmethod
    @abstractmethod
    def examples(cls, K: oracle.HasLMO, horizon: int) -> "Sequence[Learner[Any]]":
        """Settings worth testing on a set, for the checks of `tidewolf.testing`."""

    def save(self, state: S) -> bytes:
        """The state as bytes that `load` continues from."""
        return checkpoint.dump(state, settings=self._fingerprint, learner=type(self).__name__)

    @cached_property
    def _fingerprint(self) -> str:
        return values.fingerprint(self)

    def load(self, data: bytes, *, source: str = "The saved state") -> S:
        """A saved state again; refused if it was saved under other settings, or is none.

        `source` is what a warning calls it if it was written on another processor, or with other
        versions of Python or of the packages that compute.
        """
        if not isinstance(data, bytes):
            raise errors.WrongType(
                f"A saved state is bytes, as `save` gives them, not a {type(data).__name__}."
            )
        saved = checkpoint.load(data, settings=self._fingerprint, reference=self.K.center)
        try:
            state: S = conforming(saved.fields, self.state_type, beginning(self), self.K)
            self._require_whole(state)
        except Exception as error:  # hand-made content breaks in every way
            who, wrong = type(self).__name__, checkpoint.half_sentence(error)
            raise errors.BrokenFile(
                f"The saved state has a right checksum and is no state of {who}: {wrong}."
            ) from None
        if other := checkpoint.versions_elsewhere(saved.writer):
            warnings.warn(
                f"{source} was written with {other}. It continues, and its numbers may differ from "
                "those of the writer by rounding.",
                errors.OtherVersions,
                stacklevel=2,
            )
        return state

    def _require_whole(self, state: S) -> None:
        """Refuse, by a ValueError, a state that the next round could not go on from: the point it
        plays is a member of the set.
        """
        if not self.rounds_left(state) >= 1:
            raise ValueError("no round is left before its next update")
        if is_committed(self, state) and not is_member(self.K, self.act(state)):
            raise ValueError("the point it plays is no member of the set")


_check(Learner)


def few_threads(K: Any) -> AbstractContextManager[Any]:
    """One thread for products of matrices within the context, if they have at most
    `spectra.SMALL` rows and columns or are a device's, and those made here are smaller yet: threads
    that wait for one another at each of them take twenty times as long.
    """
    if not isinstance(K, spectra.Spectral):
        return nullcontext()
    is_small = max(K.shape) <= spectra.SMALL or arrays.device_name(K.center) != "cpu"
    return sparse.one_thread() if is_small else nullcontext()
