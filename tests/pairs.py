"""Which learner takes which set: a test of a pair that is refused is not collected, so that a skip
is always a hole.

That the others refuse is
`test_learners.py::test_a_learner_refuses_the_sets_it_cannot_play_on`.
"""

from tidewolf import baselines, learners, sets


def takes(kind, K):
    """Exploring needs a ball inside; linear programs need a linear description; exact projections
    one, or a projection of the set's own.
    """
    if kind is learners.BanditPrimalDual:
        return K.inner_radius is not None
    if kind in (baselines.CLASP, baselines.Resolve):
        return isinstance(K, sets.Polyhedral)
    if kind in (baselines.ProjectedPrimalDual, baselines.ProximalPenalty, baselines.SinhaVaze):
        return isinstance(K, sets.Polyhedral | sets.Projectable)
    return True
