"""Why a decision is what it is: `session.explain()`.

trail.py    what a session keeps for it: the states that decisions were made from, and what it
            was told last
parts.py    the decision, the move, the limits, by name
members.py  who moved it, exactly
explain.py  all of it, of one decision
record.py   `Explanation`, to read or as plain numbers
words.py    how it reads
short.py    the same in one sentence
"""

from tidewolf.explanation.explain import explained
from tidewolf.explanation.record import Explanation
from tidewolf.explanation.trail import (
    BEGUN,
    KEPT,
    OPENED,
    Costs,
    Stood,
    Told,
    Trail,
    carried,
    played_point,
    rebuilt,
)

__all__ = [
    "BEGUN",
    "KEPT",
    "OPENED",
    "Costs",
    "Explanation",
    "Stood",
    "Told",
    "Trail",
    "carried",
    "explained",
    "played_point",
    "rebuilt",
]
