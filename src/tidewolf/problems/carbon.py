"""Carbon-aware placement, hour by hour for 2020 and 2021: shares of work in 13 power grids.

    K = { x : 0 <= x_r <= 0.25, sum x = 1 }
    f_t(x) = <generation_t / each grid's 99.9th percentile over the record, x>
        how strained the grids are
    g_t(x) = <carbon_t, x> / BUDGET - 1   gCO2/kWh

The best fixed placement with every g_t <= 0 has mean loss 0.59222, against 0.52241 without the
limits.
Generation and carbon intensity from CarbonCast (Maji et al. 2022).
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from tidewolf.core.batch import Stream
from tidewolf.core.settings import Count, Seed, validated
from tidewolf.functions.linear import Affine, Linear
from tidewolf.problems.base import Problem
from tidewolf.problems.data import RECORDS, first_rounds, recorded
from tidewolf.sets.simplices import CappedSimplex

BUDGET = 171.896  # gCO2/kWh
CAP, DAY = 0.25, 24


@validated
def carbon(
    rounds: Annotated[
        int | None,
        Count(
            "How many rounds are taken from the record. None: all of its two years.", unit="hours"
        ),
    ] = None,
    seed: Annotated[int, Seed("Without effect: the stream is a record.")] = 0,
) -> Problem:
    """Work placed in 13 power grids under a carbon budget through two recorded years, hour by hour.

    Parameters
    ----------
    rounds : int, optional
        How many rounds are taken from the record. None: all of its two years. Unit: hours.
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
    >>> tw.problems.named("carbon") is tw.problems.carbon  # what a file calls "carbon"
    True
    """
    intensity, generation, regions = recorded(RECORDS["carbon"], "ci_x10", "gen_gw_x100", "regions")
    taken = first_rounds(rounds, len(intensity), "carbon")
    full = np.percentile(generation, 99.9, axis=0)
    strain, carbon = generation[taken] / full, intensity[taken] / (10 * BUDGET)
    return Problem(
        "carbon",
        CappedSimplex(len(regions), CAP),
        Stream(Linear(strain), Affine(carbon, np.ones(len(carbon)))),
        f"Shares of work in {len(regions)} power grids, at most {CAP:g} in each and {BUDGET:g} "
        "gCO2/kWh over all.",
        tuple(str(region) for region in regions),
        DAY,
    )
