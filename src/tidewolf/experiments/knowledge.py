"""Whether a recorded stream has what the experts of a learner need: times, and points by name."""

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
    """Refuse experts that need a time or points which no round of the stream has."""
    for one in learner.fields().get("experts") or ():
        if isinstance(one, Season) and one.seconds is not None and stream.time is None:
            raise InvalidInput(
                f"A season of {one.period} follows the time of rounds, and the stream has none: "
                "give the period as a number of rounds, or tables with a column called time.",
                setting="season",
            )
        if isinstance(one, Resolve):
            _require_data(one.data, stream)
        elif isinstance(one, Named):
            _require_name(one.name, stream)


def _require_data(data: int | str, stream: Stream) -> None:
    if data == "forecast":
        raise InvalidInput(
            "A recorded stream holds no forecasts to re-solve with; take last, or a period.",
            setting="experts",
        )
    if isinstance(data, str) and data != "last" and stream.time is None:
        raise InvalidInput(
            f"Re-solving with the data of {data} ago follows the time of rounds, and the stream "
            "has none: give a number of rounds, or tables with a column called time.",
            setting="experts",
        )


def _require_name(name: str, stream: Stream) -> None:
    names = tuple(stream.advice or ())
    if name not in names:
        there = f"there are {', '.join(names)}" if names else "there are none"
        raise InvalidInput(
            'An expert is "last", a number of rounds, a duration such as "1d", or the name of '
            f"points in [stream] advice, of which {there}; not {shown(name)}."
            f"{did_you_mean(name, (*names, 'last'))}",
            setting="experts",
        )
