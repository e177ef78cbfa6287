"""Why a decision is what it is: `session.explain()`.

trail.py    what a session keeps for it: the states that decisions were made from, and what was
            observed last
parts.py    the decision, the move, the limits, by name
explain.py  all of it, of one decision, and which expert moved it
record.py   `Explanation`, to read or as plain numbers
text.py     how it reads, as a page and in one sentence
"""

from tidewolf.explanation.record import Explanation

__all__ = ["Explanation"]
