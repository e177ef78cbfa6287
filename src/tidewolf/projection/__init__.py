"""Approximately feasible projections: the paper's, the one-shot, and the one that keeps an active
set.
"""

from tidewolf.projection.active import ActiveSet
from tidewolf.projection.one_shot import Projected, afp, closer_to_all, closer_to_center
from tidewolf.projection.paper import afp_paper

__all__ = ["ActiveSet", "Projected", "afp", "afp_paper", "closer_to_all", "closer_to_center"]
