"""Traffic engineering between four PoDs of a Meta data centre: what each pair of them sends, split
over three paths, round after round as it was measured.

    K = a simplex of 3 for each of 12 ordered pairs
    f_t(x) = max_l sum_p uses(p, l) demand_t(pair of p) x_p / capacity_l / best_t

best_t is the least that any split could have made of the fullest link in that round, by a linear
program, so that f_t >= 1 and 1 is perfect. There are no limits.

The first 7,500 rounds are there to learn from, rounds COUNTED, from 7,500 to 9,999, count. Mean
over these: even splits 1.400, re-solving with the matrix of the last round 1.394, with the mean of
the last twelve 1.282, the best fixed split 1.123, and a neural policy trained on the others (DOTE)
1.125. Meta's trace as prepared for FIGRET (SIGCOMM 2024).
"""

from __future__ import annotations

from itertools import permutations
from typing import Annotated

import numpy as np

from tidewolf.core.batch import Stream
from tidewolf.core.settings import Count, Seed, validated
from tidewolf.core.types import NDArray
from tidewolf.functions.loads import MaxUtilization
from tidewolf.problems.base import Problem
from tidewolf.problems.data import RECORDS, first_rounds, recorded
from tidewolf.sets.simplices import SimplexProduct

PODS, COUNTED = 4, slice(7500, 10_000)


@validated
def meta(
    rounds: Annotated[
        int | None, Count("How many rounds are taken from the record. None: all 10,000.")
    ] = None,
    seed: Annotated[int, Seed("Without effect: the stream is a record.")] = 0,
) -> Problem:
    """Traffic between four PoDs of a Meta data centre, split over three paths a pair; no limits.

    The loss is how full the fullest link is, over the least that it could have been. Rounds 7,500
    to 9,999 are those that published numbers are about; the rest is there to learn from.

    Parameters
    ----------
    rounds : int, optional
        How many rounds are taken from the record. None: all 10,000.
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
    >>> tw.problems.named("meta") is tw.problems.meta  # what a file calls "meta"
    True
    """
    demands, uses, pair, capacities, best = recorded(
        RECORDS["meta"], "demands", "path_links", "path_pair", "capacities", "best_mlu"
    )
    taken = first_rounds(rounds, len(demands), "meta")
    relative = demands[taken].astype(np.float64) / best[taken, None]
    splits = SimplexProduct(np.bincount(pair).tolist())
    return Problem(
        "meta",
        splits,
        Stream(MaxUtilization(uses.T.astype(np.float64), relative, capacities, splits.owner)),
        f"Traffic between {PODS} PoDs of a data centre, each of {len(splits.sizes)} ordered pairs "
        "split over its paths, for the least full fullest link.",
        _names(uses, pair),
    )


def _names(uses: NDArray, pair: NDArray) -> tuple[str, ...]:
    """A path by its ends and what it passes; links and pairs are the ordered pairs of PoDs."""
    ends = list(permutations(range(PODS), 2))
    names = []
    for path, links in enumerate(uses):
        source, target = ends[pair[path]]
        passed = sorted({head for link in np.flatnonzero(links) for head in ends[link]})
        via = ", ".join(str(pod) for pod in passed if pod not in (source, target))
        names.append(f"{source} > {target} via {via}" if via else f"{source} > {target}")
    return tuple(names)
