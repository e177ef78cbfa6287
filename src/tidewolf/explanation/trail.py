"""What a session keeps so that it can explain itself: references, no copies.

A state that a round was decided from stays for as long as the round is pending, and one round
longer, for states share their tables; so does what was told last when it was decided. The way as it
was before each of the last few observations stays, too, for going back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, NamedTuple

from tidewolf.core.arrays import to_numpy
from tidewolf.core.feedback import Bandit, Feedback, FirstOrder, FullInformation
from tidewolf.core.known import Known
from tidewolf.core.types import Array
from tidewolf.core.unlimited import Unlimited
from tidewolf.functions.capacity import Capacity
from tidewolf.functions.linear import Linear
from tidewolf.methods.base import Learner
from tidewolf.methods.compiled_rounds import KernelState
from tidewolf.methods.late import coming_round
from tidewolf.methods.migration import Move
from tidewolf.methods.turns import Decide, Meet, Tell, Turn, decision, waiting

BACK = 8
"""Observations that explanations go back."""
KEPT = BACK + 4
"""Observations that the way is made of where it was not written down as they came."""
ROOM = 1_000_000
"""Entries of points; where they have more, fewer."""
BEGUN = "The session was begun from a state, loaded or copied at this round"
OPENED = "The session was opened at this round, and its history does not reach farther back"
WENT_BACK = "The session went back to this round, farther than what explains it is kept"
REPLACED = "The learner was replaced before this round"


class Told(NamedTuple):
    """Feedback on a round."""

    round: int
    seen: Any
    """feedback as it was given: the functions, where they were; or the costs they are made of"""
    x: Array
    """what was played"""


class Costs(NamedTuple):
    """A round of costs and capacities, as an array of one row each."""

    costs: Array
    capacities: Array | None

    def functions(self) -> FullInformation:
        """The functions they stand for."""
        loss = Linear._unchecked(C=self.costs)
        if self.capacities is None:
            return FullInformation(loss, Unlimited(loss.shape))
        return FullInformation(loss, Capacity._unchecked(c=self.capacities))


def whole_told(told: Told | None) -> Told | None:
    """The same with its functions, where it has costs."""
    if told is None or not isinstance(told.seen, Costs):
        return told
    return Told(told.round, told.seen.functions(), told.x)


class Stood(NamedTuple):
    """A round as it was decided: the coming one of a state, or one that is pending in it."""

    round: int
    state: Any
    told: Told | None
    """what was told last before it"""

    def whole(self) -> Stood:
        """The same with its state, where a kernel left arrays."""
        state = self.state.state if isinstance(self.state, KernelState) else self.state
        return Stood(self.round, state, whole_told(self.told))

    def x(self, learner: Learner[Any]) -> Array:
        """The decision."""
        own = decision(self.state, self.round)
        return learner.act(self.state) if own is None else own.x


class Carried(NamedTuple):
    """What was played last, before the learner was replaced."""

    round: int
    x: Array
    """in the entries of the set that is now"""
    gone: tuple[tuple[str, float], ...]
    """entries that it used and the set no longer has, and how much was there"""


class Trail:
    """The way a session came, as far as explanations need it. Dicts and tuples are replaced, never
    changed, so that copies share them.
    """

    def __init__(self, learner: Learner[Any], at: int, came: str = BEGUN) -> None:
        self.came, self.at = came, at
        """why nothing is known of earlier rounds; the coming round after the last observation"""
        self.carried: Carried | None = None
        self.is_whole = False
        """whether all that the file of the session says of it is here"""
        self._most = min(BACK, ROOM // max(1, math.prod(learner.hard_set.shape)))
        self.earlier: tuple[Trail, ...] = ()
        """the trail before each of the last observations, without their own"""
        self.stood: dict[int, Stood] = {}
        """by the number of the round"""
        self._told: Told | None = None
        self.known: dict[int, Known] = {}
        """before the rounds that are kept"""

    def copy(self) -> Trail:
        """One that continues on its own."""
        return copy(self)

    def after(
        self,
        learner: Learner[Any],
        before: Any,
        after: Any,
        turns: Sequence[Turn],
        told: Told | None,
    ) -> Trail:
        """The trail after the step from one state to the next by these turns."""
        trail, coming = copy(self), coming_round(after)
        number, rounds = coming_round(before), [one.round for one in waiting(after)]
        plain = len(turns) == 1 and not rounds and not waiting(before) and coming == number + 1
        settled = learner.is_settled(before)
        if plain and settled and told is not None:
            trail.go_on_plainly(number, before, told)
            return trail
        if told is not None:
            trail.earlier, trail.at, trail._told = self._all(), coming, told
        known, stood = self.known.copy(), self.stood.copy()
        for i, turn in enumerate(turns):
            if isinstance(turn, Tell):
                known[number + sum(isinstance(one, Decide) for one in turns[:i])] = turn.known
        stood |= {one: Stood(one, after, self.told) for one in rounds if one >= number}
        if coming > number and number not in rounds and settled:
            stood[number] = Stood(number, before, self.told)
        least = min([*rounds, coming - 1]) - 1
        trail.stood = {one: own for one, own in stood.items() if one >= least}
        trail.known = {one: own for one, own in known.items() if one >= least}
        return trail

    def go_on_plainly(self, number: int, before: Any, told: Told) -> None:
        """Continue from round `number` to the next, with nothing known, pending or settled anew;
        states and functions are made of arrays when an explanation asks for them.
        """
        self.earlier, was = self._all(), self.stood.get(number - 1)
        self.at, now = number + 1, Stood(number, before, self._told)
        self.stood = {number: now} if was is None else {number - 1: was, number: now}
        self._told = told
        self.known = {one: own for one, own in self.known.items() if one >= number - 1}

    @property
    def told(self) -> Told | None:
        """What was told last."""
        self._told = whole_told(self._told)
        return self._told

    def _all(self) -> tuple[Trail, ...]:
        """The earlier trails, and this one without its own."""
        own = copy(self)
        own.earlier = ()
        return (*self.earlier, own)[-self._most :] if self._most else ()

    def back_to(self, learner: Learner[Any], number: int) -> Trail:
        """The way to the moment when this round became the coming one, as far as it is kept."""
        found = [one for one in (*self.earlier, self) if one.at <= number]
        if not found:
            return Trail(learner, number, WENT_BACK)
        there = copy(found[-1])
        there.earlier = tuple(found[:-1])
        there.stood = {one: own for one, own in there.stood.items() if one < number}
        there.known = {one: own for one, own in there.known.items() if one < number}
        return there

    def decided(self, number: int, state: Any) -> Stood | None:
        """The coming round of `state`, or an earlier one, as it was decided; None where that is
        not known.
        """
        if number == coming_round(state):
            return Stood(number, state, self.told)
        found = self.stood.get(number)
        return None if found is None else found.whole()

    def before(self, stood: Stood) -> Stood | None:
        """The last round that was decided before this one."""
        earlier = [one for one in self.stood if one < stood.round]
        return self.stood[max(earlier)].whole() if earlier else None

    def since(self, before: Stood | None) -> int | None:
        """The round that a decision is compared with."""
        if before is not None:
            return before.round
        return None if self.carried is None else self.carried.round


def rebuilt(learner: Learner[Any], steps: Iterable[Any], came: str) -> Trail:
    """The way that these steps went, each with its `before`, `turns` and `place`."""
    trail = Trail(learner, 0, came)
    for step in steps:
        told, last = None, step.turns[-1]
        if isinstance(last, Meet):
            number, seen, played = last.arrival[:3]
            own = decision(step.before, number)
            if played is None:
                x = learner.act(step.before) if own is None else own.x
                played = played_point(learner, step.before, seen, x)
            told = Told(number, seen, played)
        trail = trail.after(learner, step.before, step.place.state, step.turns, told)
    return trail


def carried(old: Learner[Any], new: Learner[Any], state: Any, trail: Trail) -> Trail:
    """The way so far, of a learner that is replaced: what was played last, by name, and what was
    told last if the set is the same.
    """
    number = coming_round(state)
    stood, after = Stood(number, state, trail.told), Trail(new, number, REPLACED)
    before = trail.before(stood)
    x = installed(old, stood, before, trail.carried)
    since = trail.since(before)
    if x is None or since is None:
        return after
    move, names = Move(old.hard_set, new.hard_set), getattr(old.hard_set, "names", None)
    lost = zip(range(len(move.to)), move.to.tolist(), strict=True)
    flat = to_numpy(x).reshape(-1)
    gone = [i for i, there in lost if there < 0 and flat[i] > 0.0]
    called = tuple((str(i) if names is None else names[i], float(flat[i])) for i in gone)
    after.carried = Carried(since, move.scattered(x), called)
    after._told = trail.told if move.stays else None
    return after


def installed(
    learner: Learner[Any], stood: Stood, before: Stood | None, carried: Carried | None = None
) -> Array | None:
    """What was played in the round before, as far as is known when this one is decided: the
    decision, unless something else was told to have been.
    """
    if before is None:
        return None if carried is None else carried.x
    if stood.told is not None and stood.told.round == before.round:
        return stood.told.x
    return before.x(learner)


def played_point(learner: Learner[Any], state: Any, seen: Feedback, x: Array) -> Array:
    """What is played in the last of the rounds that are told of, where that is the decision x of
    the first.
    """
    k = seen.rounds
    if k > 1 and not isinstance(seen, FirstOrder) and k <= learner.rounds_left(state):
        return learner.acts(state, k)[k - 1, ...]
    return x


def last_round(seen: Feedback) -> Feedback:
    """The last of the rounds that were told of together, where they can be told apart."""
    k = seen.rounds
    if k == 1 or isinstance(seen, FirstOrder):
        return seen
    if isinstance(seen, Bandit):
        return Bandit(seen.loss_values[k - 1 :], seen.constraint_values[k - 1 :])
    return type(seen)(seen.losses[k - 1 : k], seen.constraints[k - 1 : k])
