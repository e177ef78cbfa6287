"""`tidewolf live`: read rows one by one, and answer each with the decision of the next round.

    row 1 -> decision of round 2;   row 2 -> decision of round 3;   ...

A decision is made before its row is known. The answer to a row is the decision of the next round.
After a kill the same command resumes with the answers that it would have given without the kill.

rows.py        a line of JSON as a row, tables that grow on disk as rows, and times of rows
runner.py      take rows one by one: decisions by name, the learner of an experiment without a
               horizon; which rows were taken is kept in the database of the session
"""

from tidewolf.live.rows import Follower, Line, parse
from tidewolf.live.runner import LiveRunner, live_learner

__all__ = ["Follower", "Line", "LiveRunner", "live_learner", "parse"]
