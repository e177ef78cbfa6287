"""What happens to a session, as values: done to a state they give the next one, in memory and
again from a file.

    Tell      this is known before the coming round
    Decide    the coming round is decided, and its feedback comes later: it waits
    Expire    a round that waits is waited for no more
    Meet      feedback on a round that waits, or on the coming one

The round that stands is the newest that was decided, while it waits, else the coming one. In order
nothing waits, and rounds are met without having been decided.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from tidewolf.core.feedback import Arrival
from tidewolf.core.known import Known
from tidewolf.methods.advice.asking import sleeping
from tidewolf.methods.base import Learner
from tidewolf.methods.late import coming_round


class Tell(NamedTuple):
    known: Known


class Decide(NamedTuple):
    pass


class Expire(NamedTuple):
    round: int


class Meet(NamedTuple):
    arrival: Arrival
    settled: bool = True
    """whether the coming round had been settled when feedback on an earlier one came"""


Turn: TypeAlias = Tell | Decide | Expire | Meet


def after(learner: Learner[Any], state: Any, turn: Turn) -> Any:
    """The state after a turn, whose coming round may still have to be settled; whatever is refused
    leaves the old one good. Of the round that the turn is about those sleep who did when it was
    told.
    """
    match turn:
        case Tell(known):
            with sleeping(known.asleep or ()):
                state = learner.settled(state)
                return state if known.says_nothing else learner.informed(state, known)
        case Decide():
            return learner.passed(learner.settled(state))
        case Expire(number):
            return learner.forgotten(state, (number,))
        case Meet(arrival, settled):
            return learner.learned(learner.settled(state) if settled else state, arrival)


def waiting(state: Any) -> tuple[Any, ...]:
    """The rounds that were decided and are not told of yet, oldest first."""
    rounds: tuple[Any, ...] = getattr(state, "pending", ())
    return rounds


def decision(state: Any, number: int) -> Any:
    """What was decided of a round that waits; None where it does not."""
    rounds = waiting(state)
    return next((one for one in rounds if one.round == number), None) if rounds else None


def standing_round(state: Any) -> int:
    """The number, from 0, of the round that stands."""
    coming, rounds = coming_round(state), waiting(state)
    return coming - 1 if rounds and rounds[-1].round == coming - 1 else coming


def deciding(state: Any, number: int, known: Known | None, expire_after: int | None) -> list[Turn]:
    """The turns that decide all rounds up to this one, which alone is told what is known; those
    that then wait for longer than `expire_after` rounds expire.
    """
    turns: list[Turn] = []
    rounds = [one.round for one in waiting(state)]
    for coming in range(coming_round(state), number + 1):
        if coming == number and known is not None:
            turns.append(Tell(known))
        turns.append(Decide())
        rounds.append(coming)
        while expire_after is not None and rounds[0] <= coming - expire_after:
            turns.append(Expire(rounds.pop(0)))
    return turns


def takes_late(learner: Learner[Any]) -> bool:
    """Whether its feedback may come late, and of other points than it decided."""
    return type(learner).arrived is not Learner.arrived
