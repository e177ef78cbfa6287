"""Checks of your own sets, functions and learners: each raises `CheckFailed` with one sentence, or
returns nothing.
"""

from tidewolf.testing.functions import check_function
from tidewolf.testing.learners import check_learner
from tidewolf.testing.sets import check_set

__all__ = ["check_function", "check_learner", "check_set"]
