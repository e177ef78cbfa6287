"""Why a decision is what it is: `session.explain()`.

explain.py  what a session keeps for it (`History`), and the decision, its move, the experts and the
            constraints, by name
record.py   `Explanation`: the fields, the page that it prints, and the one line for logs
"""

from tidewolf.explanation.record import Explanation

__all__ = ["Explanation"]
