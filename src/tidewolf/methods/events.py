"""The events of a session as values: applied to a state they give the next one, in memory and again
from a file.

    Tell      this is known before the coming round
    Decide    the coming round is decided, and its feedback comes later: it waits
    Expire    a round that waits is waited for no more
    Meet      feedback on a round that waits, or on the coming one

The round that stands is the newest that was decided, while it waits, else the coming one. In order
nothing waits, and rounds are met without having been decided.
"""

from typing import Any, NamedTuple, TypeAlias

from tidewolf.core import feedback, round_info
from tidewolf.experts.base import skipping
from tidewolf.methods import base, compiled_rounds, late
from tidewolf.methods.capabilities import Commits, committed, kernel_of, late_feedback, with_info


class SetInfo(NamedTuple):
    info: round_info.RoundInfo


class Decide(NamedTuple):
    pass


class Expire(NamedTuple):
    round: int


class Observe(NamedTuple):
    arrival: feedback.Arrival
    # whether the coming round had been closed when feedback on an earlier one came
    committed: bool = True


Event: TypeAlias = SetInfo | Decide | Expire | Observe


def after(learner: base.Learner[Any], state: Any, event: Event) -> Any:
    """The state after a turn, whose coming round may still have to be closed; whatever is refused
    leaves the old one good. Of the round that the turn is about those sleep who did when it was
    told.
    """
    match event:
        case SetInfo(info):
            with skipping(info.skipped or ()):
                state = committed(learner, state)
                return state if info.says_nothing else with_info(learner, state, info)
        case Decide():
            if isinstance(learner, Commits):
                return learner.advance(state)
            return late_feedback(learner).defer(state)
        case Expire(number):
            return late_feedback(learner).drop(state, (number,))
        case Observe(arrival, is_committed):
            if isinstance(learner, Commits):
                before = learner.committed(state) if is_committed else state
                found = learner.learned(before, arrival)
                return found if arrival.costs is None else found._replace(costs=arrival.costs)
            if arrival.played is None and not waiting(state):
                return learner.update(state, arrival.feedback)
            return late_feedback(learner).on_feedback(state, (arrival,))


def round_of(state: Any, event: Event) -> int:
    """The number of the round that an event is about, as it comes to this state."""
    if isinstance(event, Observe):
        return event.arrival.round
    return event.round if isinstance(event, Expire) else late.next_round(state)


def stepped(learner: base.Learner[Any], state: Any, event: Event) -> Any:
    """The same for a state that may be what a kernel left. If the kernel plays the event, too, what
    it leaves comes back, and no state is made of it.
    """
    if isinstance(event, Observe) and event.committed and event.arrival.costs is None:
        kernel = kernel_of(learner)
        found = None if kernel is None else kernel.observed(state, event.arrival)
        if found is not None:
            return found
    return after(learner, compiled_rounds.whole(state), event)


def waiting(state: Any) -> tuple[Any, ...]:
    rounds: tuple[Any, ...] = getattr(state, "pending", ())
    return rounds


def decision(state: Any, number: int) -> Any:
    rounds = waiting(state)
    return next((one for one in rounds if one.round == number), None) if rounds else None


def current_round(state: Any) -> int:
    """The number, from 0, of the round that stands."""
    upcoming, rounds = late.next_round(state), waiting(state)
    return upcoming - 1 if rounds and rounds[-1].round == upcoming - 1 else upcoming


def deciding(
    state: Any, number: int, info: round_info.RoundInfo | None, expire_after: int | None
) -> list[Event]:
    """The events that decide all rounds up to this one, which alone has the side information; those
    that then wait for longer than `expire_after` rounds expire.
    """
    events: list[Event] = []
    rounds = [one.round for one in waiting(state)]
    for upcoming in range(late.next_round(state), number + 1):
        if upcoming == number and info is not None:
            events.append(SetInfo(info))
        events.append(Decide())
        rounds.append(upcoming)
        while expire_after is not None and rounds[0] <= upcoming - expire_after:
            events.append(Expire(rounds.pop(0)))
    return events
