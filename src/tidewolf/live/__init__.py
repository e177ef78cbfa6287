"""`tidewolf live`: read rows one by one, and answer each with the decision of the next round.

    row 1 -> decision of round 2;   row 2 -> decision of round 3;   ...

A decision is made before its row is known. The answer to a row is the decision of the next round.
After a kill the same command resumes with the answers that it would have given without the kill.
"""

from tidewolf.live.runner import Follower, Line, LiveRunner, live_learner, parse

__all__ = ["Follower", "Line", "LiveRunner", "live_learner", "parse"]
