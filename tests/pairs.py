"""Which learner takes which set: a test of a pair that is refused is not collected, so that a skip
is always a hole.

That the others refuse, and in a sentence, is
`test_learners.py::test_who_refuses_a_set_says_so_in_a_sentence`.
"""

from typing import Any

from tidewolf.baselines import ProjectedPrimalDual, ProximalPenalty, Resolve, SinhaVaze, WarmUp
from tidewolf.learners import BanditPrimalDual
from tidewolf.sets import Polyhedral, Projectable


def takes(kind: Any, K: Any) -> bool:
    """Exploring needs a ball inside; linear programs need a linear description; exact projections
    one, or a projection of the set's own.
    """
    if kind is BanditPrimalDual:
        return K.inner_radius is not None
    if kind in (Resolve, WarmUp):
        return isinstance(K, Polyhedral)
    if kind in (ProjectedPrimalDual, ProximalPenalty, SinhaVaze):
        return isinstance(K, Polyhedral | Projectable)
    return True
