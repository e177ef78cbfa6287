"""`tidewolf live`: read rows one by one, and answer each with the decision of the next round.

    row 1 -> decision of round 2;   row 2 -> decision of round 3;   ...

A decision is made before its row is known. The answer to a row is the decision of the next round.
After a kill the same command resumes with the answers that it would have given without the kill.

lines.py       a line of JSON as a row, and times of rows
runner.py      take rows one by one, and the learner of an experiment without a horizon; which rows
               were taken is kept in the database of the session
entries.py     decisions by name: points, paths, the cost of a round
following.py   tables that grow on disk, as rows
"""

from tidewolf.live.following import Follower
from tidewolf.live.lines import Line, parse
from tidewolf.live.runner import LiveRunner, live_learner

__all__ = ["Follower", "Line", "LiveRunner", "live_learner", "parse"]
