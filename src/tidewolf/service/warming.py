"""Compile what sessions need before a request waits for it.

Kernels are compiled when they are first called and kept on disk. On a new machine that takes up to
a minute for each kind of session, once. So when a session is made, and when a server finds sessions
in its store, a few rounds are played on a copy that is thrown away: in order, then with late
feedback, and with a violated constraint.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

import numpy as np

from tidewolf.core import arrays, errors, feedback
from tidewolf.methods.capabilities import LateFeedback, beginning
from tidewolf.service.description import Built, Description
from tidewolf.session import Session
from tidewolf.sets.base import ConvexSet
from tidewolf.storage.session_store import SessionStore

# Sessions of a store whose descriptions are read at the start.
MOST_SESSIONS = 1000
# Sessions of a store that are built at the start, one for each kind of description.
MOST_BUILT = 50
# Kinds of sessions that have played here.
_WARM: set[Hashable] = set()


def warm_up(built: Built) -> None:
    """Play a few rounds of this learner in memory, unless one of its kind has; errors are left to
    the session's own rounds.
    """
    kind = type(built.learner), built.learner.needs, _kind_of_set(built.K)
    if kind in _WARM:
        return
    _WARM.add(kind)
    with suppress(errors.TidewolfError):
        learner = built.learner
        state = learner.load(learner.save(beginning(learner)))  # as from a store
        session = Session(learner, state)
        for number in range(3):
            session.play()
            _observe(session, number)
        if isinstance(learner, LateFeedback):
            session.play(round=4)
            _observe(session, 4)
            _observe(session, 3)
        session.play()


def warm_store(store: SessionStore) -> None:
    """Warm up every kind of session that is kept, up to `MOST_BUILT` kinds."""
    found = set[Hashable]()
    for info in store.infos(most=MOST_SESSIONS):
        with suppress(Exception):  # deleted meanwhile, or damaged: its own requests report it
            text = getattr(store.info(info.name), "description", "")
            given = json.loads(text)  # those of the same kind have the same keys and learners
            kind = given["set"].get("kind"), *given["set"], json.dumps(given.get("learners"))
            if kind not in found and len(found) < MOST_BUILT:
                found.add(kind)
                warm_up(Description.parse(text).build())


def _kind_of_set(K: Any) -> Hashable:
    """Equal for sets whose kernels are the same: of the same classes and switches."""
    if isinstance(K, tuple):
        return frozenset(map(_kind_of_set, K))
    if not isinstance(K, ConvexSet):
        return str(K if isinstance(K, bool | str) else type(K))
    return type(K), len(K.shape), *map(_kind_of_set, K.fields().values())


def _observe(session: Session[Any], number: int) -> None:
    """A round of costs that push the same way every round, so that iterates leave the set, and of
    capacities that the center exceeds.
    """
    K = session.learner.K
    if session.learner.needs is feedback.Bandit:
        session.observe(loss_value=1.0, constraint_value=0.1, round=number)
        return
    # read-only, as those are that were read from a store: kernels differ
    costs = arrays.frozen(np.linspace(1.0, 2.0, math.prod(K.shape)).reshape(K.shape))
    most = 0.5 * float(arrays.to_numpy(K.center).max(initial=0.0)) or 0.5
    capacities = arrays.frozen(np.full(K.shape, most)) if len(K.shape) == 1 else None
    session.observe(costs=costs, capacities=capacities, round=number)
