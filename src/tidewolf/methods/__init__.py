"""What learners share: base classes, projected points and steps. Import from here for your own
learner.
"""

from tidewolf.core.arrays import frozen
from tidewolf.methods.base import Bound, Learner
from tidewolf.methods.clock import BlockLearner, EveryRound
from tidewolf.methods.late import Deferred, Overrides
from tidewolf.methods.paper import Banked, ProjectedPoint, Projecting
from tidewolf.methods.steps.slopes import Slopes, tangent_gradients

__all__ = [
    "Banked", "BlockLearner", "Bound", "Deferred", "EveryRound", "Learner", "Overrides",
    "ProjectedPoint", "Projecting", "Slopes", "frozen", "tangent_gradients",
]  # fmt: skip
