"""Rows in, decisions out: `tidewolf live`.

    decision 1;   row 1 -> decision 2;   row 2 -> decision 3;   ...

A decision is made before its row is known. A row is observed, kept, and answered with the decision
that follows it; an answer that was given survives the process, and what comes after a kill is what
would have come without it, to the bit on the same machine (`Session.open`).

clock.py       times of rows, and when the next one is expected
lines.py       a line of JSON as a row, or as what is known of the coming round
ledger.py      which rows were taken and what was answered, in the database of the session
entries.py     decisions by name: points, paths, what a round came to
desk.py        rows taken one by one: the same row twice is the same row
following.py   tables that grow on disk, as rows
learner.py     who decides
pipes.py       lines that come through a pipe
"""

from tidewolf.live.following import Follower
from tidewolf.live.learner import live_learner
from tidewolf.live.lines import Line, parse
from tidewolf.live.runner import LiveRunner

__all__ = ["Follower", "Line", "LiveRunner", "live_learner", "parse"]
