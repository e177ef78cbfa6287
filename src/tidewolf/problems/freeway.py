"""The freeways of Los Angeles, every five minutes for a week: one stream of cars from one loop
detector to another.

    f_t(x) = sum_e 60 miles_e / speed_t(e) x_e              travel minutes
    g_t(x) = max_e x_e - c_t(e),     c_t(e) = min(1, speed_t(e) / its 85th percentile over the week)

The speed of an arc is the mean of the speeds at its ends. The arcs that lead away from detector 187
and lie on a way to detector 169 form a DAG of 456 arcs. The best fixed flow with every g_t <= 0
takes 11.0450 minutes on average, against 10.7910 without the limits. METR-LA loop detectors (Li et
al. 2018; Zhao et al. 2019).
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from tidewolf.core.batch import Stream
from tidewolf.core.settings import Count, Seed, validated
from tidewolf.functions.linear import Capacity, Linear
from tidewolf.problems.base import Problem
from tidewolf.problems.data import RECORDS, first_rounds, recorded
from tidewolf.sets.flows import FlowPolytope
from tidewolf.sets.graph_tools import away

SOURCE, TARGET, DAY = 187, 169, 288
SHORTEST = 0.01  # miles; some detectors lie at the same spot


@validated
def freeway(
    rounds: Annotated[
        int | None,
        Count(
            "How many rounds are taken from the record. None: all of its week.", unit="five minutes"
        ),
    ] = None,
    seed: Annotated[int, Seed("Without effect: the stream is a record.")] = 0,
) -> Problem:
    """One stream of cars across Los Angeles at a week of measured speeds, every five minutes.

    Parameters
    ----------
    rounds : int, optional
        How many rounds are taken from the record. None: all of its week. Unit: five minutes.
    seed : int, default 0
        Without effect: the stream is a record.

    Returns
    -------
    Problem
        The set, the stream and what they are called.

    Raises
    ------
    InvalidInput
        Where the record is not in the data folder (the environment variable TIDEWOLF_DATA), or has
        fewer rounds.

    Examples
    --------
    >>> tw.problems.named("freeway") is tw.problems.freeway  # what a file calls "freeway"
    True
    """
    speeds, table = recorded(RECORDS["freeway"], "speed_x3p6", "edges")
    taken = first_rounds(rounds, len(speeds), "freeway")
    links = [(int(tail), int(head)) for tail, head in table[:, :2]]
    miles = np.maximum(table[:, 2].astype(float), SHORTEST)

    kept = away(links, source=SOURCE, target=TARGET, lengths=miles)
    arcs, miles = [links[i] for i in kept], miles[kept]
    tails, heads = np.array(arcs).T
    speed = (speeds[:, tails] / 3.6 + speeds[:, heads] / 3.6) / 2
    usual = np.percentile(speed, 85, axis=0)
    return Problem(
        "freeway",
        FlowPolytope.from_edges(arcs, source=SOURCE, target=TARGET),
        Stream(Linear(60 * miles / speed[taken]), Capacity(np.minimum(1, speed[taken] / usual))),
        f"One stream of cars from detector {SOURCE} to detector {TARGET} of the Los Angeles "
        "freeways, thinner where traffic is slow.",
        tuple(f"{tail} > {head}" for tail, head in arcs),
        DAY,
    )
