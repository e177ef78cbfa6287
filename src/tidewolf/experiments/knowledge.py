"""Whether a recorded stream knows what a learner goes by: a clock, and points by name."""

from __future__ import annotations

from typing import Any

from tidewolf.core.arguments import shown
from tidewolf.core.batch import Stream
from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import did_you_mean
from tidewolf.methods.advice import Named, Resolve
from tidewolf.methods.base import Learner
from tidewolf.methods.context import Season


def require_known(learner: Learner[Any], stream: Stream) -> None:
    """Refuse a season or advice that would sleep in every round, for the stream does not say what
    it waits for.
    """
    given = learner.fields()
    season = given.get("context")
    if isinstance(season, Season) and season.seconds is not None and stream.time is None:
        raise InvalidInput(
            f"A season of {season.period} follows the time of rounds, and the stream has none: "
            "give the period as a number of rounds, or tables with a column called time.",
            setting="context",
        )
    for adviser in given.get("advice") or ():
        if isinstance(adviser, Resolve):
            _require_data(adviser.data, stream)
        elif isinstance(adviser, Named):
            _require_name(adviser.name, stream)


def _require_data(data: int | str, stream: Stream) -> None:
    if data == "forecast":
        raise InvalidInput(
            "A recorded stream holds no forecasts to re-solve with; take last, or a period.",
            setting="advice",
        )
    if isinstance(data, str) and data != "last" and stream.time is None:
        raise InvalidInput(
            f"Re-solving with the data of {data} ago follows the time of rounds, and the stream "
            "has none: give a number of rounds, or tables with a column called time.",
            setting="advice",
        )


def _require_name(name: str, stream: Stream) -> None:
    names = tuple(stream.advice or ())
    if name not in names:
        there = f"there are {', '.join(names)}" if names else "there are none"
        raise InvalidInput(
            f'Advice is "last", a number of rounds, a duration such as "1d", or the name of points '
            f"in [stream] advice, of which {there}; not {shown(name)}."
            f"{did_you_mean(name, (*names, 'last'))}",
            setting="advice",
        )
