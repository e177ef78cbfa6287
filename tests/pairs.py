"""Which learner takes which set: a test of a pair that is refused is not collected, so that a skip
is always a hole.

That the others refuse is
`test_learners.py::test_a_learner_refuses_the_sets_it_cannot_play_on`.
"""

from tidewolf.baselines import (
    CLASP,
    ProjectedPrimalDual,
    ProximalPenalty,
    Resolve,
    SinhaVaze,
    WarmUp,
)
from tidewolf.learners import BanditPrimalDual
from tidewolf.sets import Polyhedral, Projectable


def takes(kind, K):
    """Exploring needs a ball inside; linear programs need a linear description; exact projections
    one, or a projection of the set's own.
    """
    if kind is BanditPrimalDual:
        return K.inner_radius is not None
    if kind in (CLASP, Resolve, WarmUp):
        return isinstance(K, Polyhedral)
    if kind in (ProjectedPrimalDual, ProximalPenalty, SinhaVaze):
        return isinstance(K, Polyhedral | Projectable)
    return True
