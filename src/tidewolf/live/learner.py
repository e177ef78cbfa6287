"""The learner of a live session: the first that the file names, else Ensemble as in a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tidewolf.experiments import Choice, Experiment
from tidewolf.experiments.building import read_point
from tidewolf.experiments.experiment import DEFAULT_LEARNERS, USUAL, make_learner
from tidewolf.methods.base import Learner
from tidewolf.networks import Network
from tidewolf.sets import ConvexSet


def live_learner(
    experiment: Experiment,
    K: ConvexSet,
    network: Network | None = None,
    labels: Sequence[str] = (),
) -> Learner[Any]:
    """The learner of an experiment whose end is not known: it has no horizon, unless it sets one
    itself.

    Parameters
    ----------
    experiment : Experiment
        What the file says.
    K : ConvexSet
        The set of decisions.
    network : Network, optional
        The network that is decided on. None: it is none.
    labels : sequence of str, default ()
        What the entries of a decision are called.

    Returns
    -------
    Learner
        The first that is named, at its first value of caution; else Ensemble, which re-solves with
        the last round, too.

    Examples
    --------
    >>> from tidewolf.live import live_learner
    >>> tables = tw.experiments.Tables("costs.csv")
    >>> simplex = tw.experiments.Choice.of("Simplex", {"n": 2})
    >>> experiment = tw.experiments.Experiment("two", tables, simplex)
    >>> live_learner(experiment, tw.sets.Simplex(2)).advisers[0].data
    'last'
    """
    names_nobody = experiment.learners == tuple(map(Choice, DEFAULT_LEARNERS))
    entrant = USUAL if names_nobody else experiment.entrants()[0]
    defaults: dict[str, Any] = {"seed": experiment.seeds[0]}
    if names_nobody and experiment.cautions:
        defaults["caution"] = experiment.cautions[0]
    place = experiment.place(*(() if names_nobody else ("learners", 0)))
    return make_learner(entrant, K, network, place, partial(read_point, labels), defaults)
