"""Problems whose streams were recorded.

abilene: one flow from Los Angeles to Washington beside measured traffic, hour by hour for two weeks

    f_t(x) = sum_e (ospf_e / 1000) (1 + 10 load_t(e) / cap_e) x_e
    g_t(x) = max_e x_e - c_t(e),     c_t(e) = (share cap_e - load_t(e)) / DEMAND

Every measured demand follows the OSPF shortest path (there are no ties) and gives load_t(e). The
links that lead away from Los Angeles by OSPF distance and lie on a way to Washington form a DAG of
14 arcs and 7 paths. At share 0.2 the best fixed flow with every g_t <= 0 has mean loss 4.74032,
against 4.43035 without the limits; at 0.15 no flow meets every hour. Y. Zhang's Abilene data.

freeway: one stream of cars from one loop detector to another, every five minutes for a week

    f_t(x) = sum_e 60 miles_e / speed_t(e) x_e              travel minutes
    g_t(x) = max_e x_e - c_t(e),     c_t(e) = min(1, speed_t(e) / its 85th percentile over the week)

The speed of an arc is the mean of the speeds at its ends. The arcs that lead away from detector 187
and lie on a way to detector 169 form a DAG of 456 arcs. The best fixed flow with every g_t <= 0
takes 11.0450 minutes on average, against 10.7910 without the limits. METR-LA loop detectors (Li et
al. 2018; Zhao et al. 2019).

carbon: shares of work in 13 power grids, hour by hour for 2020 and 2021

    K = { x : 0 <= x_r <= 0.25, sum x = 1 }
    f_t(x) = <generation_t / each grid's 99.9th percentile over the record, x>
        how strained the grids are
    g_t(x) = <carbon_t, x> / BUDGET - 1   gCO2/kWh

The best fixed placement with every g_t <= 0 has mean loss 0.59222, against 0.52241 without the
limits. Generation and carbon intensity from CarbonCast (Maji et al. 2022).

meta: what each pair of four PoDs of a Meta data centre sends, split over three paths

    K = a simplex of 3 for each of 12 ordered pairs
    f_t(x) = max_l sum_p uses(p, l) demand_t(pair of p) x_p / capacity_l / best_t

best_t is the least that any split could have made of the fullest link in that round, by a linear
program, so that f_t >= 1 and 1 is perfect. There are no limits.

The first 7,500 rounds are there to learn from, rounds COUNTED, from 7,500 to 9,999, count. Mean
over these: even splits 1.400, re-solving with the matrix of the last round 1.394, with the mean of
the last twelve 1.282, the best fixed split 1.123, and a neural policy trained on the others (DOTE)
1.125. Meta's trace as prepared for FIGRET (SIGCOMM 2024).
"""

from itertools import permutations
from typing import Annotated

import numpy as np

from tidewolf.core import batch, settings, types
from tidewolf.functions import Affine, Linear, MaxUtilization
from tidewolf.problems import base, traffic
from tidewolf.sets import graph_tools, simplices

# Mbit/s: 0.9 of the largest flow that fits beside the measured traffic in every hour at share 0.2
DEMAND = 2098.332
SHORTEST = 0.01  # miles; some detectors lie at the same spot
CAP, BUDGET = 0.25, 171.896  # of all work in a grid; gCO2/kWh
PODS, COUNTED = 4, slice(7500, 10_000)


@settings.validated
def abilene(
    rounds: base.Rounds = None,
    seed: base.RandomSeed = 0,
    *,
    share: Annotated[float, settings.Number(above=0.0, most=1.0)] = 0.2,
) -> base.Problem:
    """One flow across the Abilene backbone beside two weeks of measured traffic, hour by hour.

    Parameters
    ----------
    rounds : int, optional
        The number of rounds from the record. None: all.
    seed : int, default 0
        Ignored: the stream is recorded.
    share : float, default 0.2
        The part of each link that traffic may fill.

    Returns
    -------
    Problem
        The set, the stream and what they are called.

    Raises
    ------
    InvalidInput
        If the record is not in the data folder (the environment variable TIDEWOLF_DATA), or has
        fewer rounds.

    Examples
    --------
    >>> tw.problems.named("abilene") is tw.problems.abilene  # what a file calls "abilene"
    True
    """
    taken, (measured, names, table) = base.first_rounds(
        "abilene", rounds, "tm_mbps", "nodes", "links"
    )
    nodes, source, target = [str(name) for name in names], "LOSAng", "WASHng"
    links = [(nodes[int(tail)], nodes[int(head)]) for tail, head in table[:, 1:3]]
    ospf, cap = table[:, 3], table[:, 4] / 1000
    load = traffic.loads(links, ospf, nodes, measured[taken].astype(float))

    kept = graph_tools.away(links, source=source, target=target, lengths=ospf)
    ospf, cap, load = ospf[kept], cap[kept], load[:, kept]
    arcs, costs = [links[i] for i in kept], ospf / 1000 * (1 + 10 * load / cap)
    return traffic.flow_problem(
        *("abilene", arcs, (source, target), costs, (share * cap - load) / DEMAND),
        title="One flow from Los Angeles to Washington across Abilene beside measured traffic, "
        f"links filled to {share:g} of their speed.",
        period=24,
    )


@settings.validated
def freeway(rounds: base.Rounds = None, seed: base.RandomSeed = 0) -> base.Problem:
    """One stream of cars across Los Angeles at a week of measured speeds, every five minutes.

    Parameters
    ----------
    rounds : int, optional
        The number of rounds from the record. None: all.
    seed : int, default 0
        Ignored: the stream is recorded.

    Returns
    -------
    Problem
        The set, the stream and what they are called.

    Raises
    ------
    InvalidInput
        If the record is not in the data folder (the environment variable TIDEWOLF_DATA), or has
        fewer rounds.

    Examples
    --------
    >>> tw.problems.named("freeway") is tw.problems.freeway  # what a file calls "freeway"
    True
    """
    taken, (speeds, table) = base.first_rounds("freeway", rounds, "speed_x3p6", "edges")
    links = [(int(tail), int(head)) for tail, head in table[:, :2]]
    miles, source, target = np.maximum(table[:, 2].astype(float), SHORTEST), 187, 169

    kept = graph_tools.away(links, source=source, target=target, lengths=miles)
    arcs, miles = [links[i] for i in kept], miles[kept]
    tails, heads = np.array(arcs).T
    speed = (speeds[:, tails] / 3.6 + speeds[:, heads] / 3.6) / 2
    capacities = np.minimum(1, speed[taken] / np.percentile(speed, 85, axis=0))
    return traffic.flow_problem(
        *("freeway", arcs, (source, target), 60 * miles / speed[taken], capacities),
        title=f"One stream of cars from detector {source} to detector {target} of the Los Angeles "
        "freeways, thinner where traffic is slow.",
        period=288,
    )


@settings.validated
def carbon(rounds: base.Rounds = None, seed: base.RandomSeed = 0) -> base.Problem:
    """Place work in 13 power grids under a carbon limit, two recorded years of hours.

    Parameters
    ----------
    rounds : int, optional
        The number of rounds from the record. None: all.
    seed : int, default 0
        Ignored: the stream is recorded.

    Returns
    -------
    Problem
        The set, the stream and what they are called.

    Raises
    ------
    InvalidInput
        If the record is not in the data folder (the environment variable TIDEWOLF_DATA), or has
        fewer rounds.

    Examples
    --------
    >>> tw.problems.named("carbon") is tw.problems.carbon  # what a file calls "carbon"
    True
    """
    taken, (intensity, generation, regions) = base.first_rounds(
        "carbon", rounds, "ci_x10", "gen_gw_x100", "regions"
    )
    strain = generation[taken] / np.percentile(generation, 99.9, axis=0)
    carbon = intensity[taken] / (10 * BUDGET)
    return base.Problem(
        "carbon",
        simplices.CappedSimplex(len(regions), CAP),
        batch.Stream(Linear(strain), Affine(carbon, np.ones(len(carbon)))),
        f"Shares of work in {len(regions)} power grids, at most {CAP:g} in each and {BUDGET:g} "
        "gCO2/kWh over all.",
        tuple(str(region) for region in regions),
        24,
    )


@settings.validated
def meta(rounds: base.Rounds = None, seed: base.RandomSeed = 0) -> base.Problem:
    """Traffic between four PoDs of a Meta data centre, three paths per pair, no constraints.

    The loss is the utilisation of the fullest link over the least possible one. Rounds 7,500 to
    9,999 are those that published numbers are about; the rest is there to learn from.

    Parameters
    ----------
    rounds : int, optional
        The number of rounds from the record. None: all.
    seed : int, default 0
        Ignored: the stream is recorded.

    Returns
    -------
    Problem
        The set, the stream and what they are called.

    Raises
    ------
    InvalidInput
        If the record is not in the data folder (the environment variable TIDEWOLF_DATA), or has
        fewer rounds.

    Examples
    --------
    >>> tw.problems.named("meta") is tw.problems.meta  # what a file calls "meta"
    True
    """
    taken, (demands, uses, pair, capacities, best) = base.first_rounds(
        "meta", rounds, "demands", "path_links", "path_pair", "capacities", "best_mlu"
    )
    relative = demands[taken].astype(np.float64) / best[taken, None]
    splits = simplices.SimplexProduct(np.bincount(pair).tolist())
    return base.Problem(
        "meta",
        splits,
        batch.Stream(MaxUtilization(uses.T.astype(np.float64), relative, capacities, splits.owner)),
        f"Traffic between {PODS} PoDs of a data centre, each of {len(splits.sizes)} ordered pairs "
        "split over its paths, for the least full fullest link.",
        tuple(_path_name(*each) for each in zip(uses, pair, strict=True)),
    )


def _path_name(links: types.NDArray, pair: int) -> str:
    """A path by its ends and what it passes; links and pairs are the ordered pairs of PoDs."""
    ends = list(permutations(range(PODS), 2))
    (source, target), used = ends[pair], {pod for i in np.flatnonzero(links) for pod in ends[i]}
    via = ", ".join(str(pod) for pod in sorted(used - {source, target}))
    return f"{source} > {target} via {via}" if via else f"{source} > {target}"
