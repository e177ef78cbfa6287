"""Abilene, hour by hour for two weeks: one flow from Los Angeles to Washington beside measured
traffic.

    f_t(x) = sum_e (ospf_e / 1000) (1 + 10 load_t(e) / cap_e) x_e
    g_t(x) = max_e x_e - c_t(e),     c_t(e) = (share cap_e - load_t(e)) / DEMAND

Every measured demand follows the OSPF shortest path (there are no ties) and gives load_t(e). The
links that lead away from Los Angeles by OSPF distance and lie on a way to Washington form a DAG of
14 arcs and 7 paths. At share 0.2 the best fixed flow with every g_t <= 0 has mean loss 4.74032,
against 4.43035 without the limits; at 0.15 no flow meets every hour. Y. Zhang's Abilene data.
"""

from __future__ import annotations

from typing import Annotated

from tidewolf.core.batch import Stream
from tidewolf.core.settings import Count, Number, Seed, validated
from tidewolf.functions.linear import Capacity, Linear
from tidewolf.problems.base import Problem
from tidewolf.problems.data import RECORDS, first_rounds, recorded
from tidewolf.problems.graphs import loads
from tidewolf.sets.flows import FlowPolytope
from tidewolf.sets.graph_tools import away

SOURCE, TARGET, DAY = "LOSAng", "WASHng", 24
# Mbit/s: 0.9 of the largest flow that fits beside the measured traffic in every hour at share 0.2
DEMAND = 2098.332


@validated
def abilene(
    rounds: Annotated[
        int | None, Count("How many rounds are taken from the record. None: all 336.", unit="hours")
    ] = None,
    seed: Annotated[int, Seed("Without effect: the stream is a record.")] = 0,
    *,
    share: Annotated[
        float, Number("The part of each link that traffic may fill.", above=0.0, most=1.0)
    ] = 0.2,
) -> Problem:
    """One flow across the Abilene backbone beside two weeks of measured traffic, hour by hour.

    Parameters
    ----------
    rounds : int, optional
        How many rounds are taken from the record. None: all 336. Unit: hours.
    seed : int, default 0
        Without effect: the stream is a record.
    share : float, default 0.2
        The part of each link that traffic may fill.

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
    >>> tw.problems.named("abilene") is tw.problems.abilene  # what a file calls "abilene"
    True
    """
    traffic, names, table = recorded(RECORDS["abilene"], "tm_mbps", "nodes", "links")
    nodes = [str(name) for name in names]
    links = [(nodes[int(tail)], nodes[int(head)]) for tail, head in table[:, 1:3]]
    ospf, cap = table[:, 3], table[:, 4] / 1000
    taken = first_rounds(rounds, len(traffic), "abilene")
    load = loads(links, ospf, nodes, traffic[taken].astype(float))

    kept = away(links, source=SOURCE, target=TARGET, lengths=ospf)
    arcs, load = [links[i] for i in kept], load[:, kept]
    ospf, cap = ospf[kept], cap[kept]
    return Problem(
        "abilene",
        FlowPolytope.from_edges(arcs, source=SOURCE, target=TARGET),
        Stream(
            Linear(ospf / 1000 * (1 + 10 * load / cap)), Capacity((share * cap - load) / DEMAND)
        ),
        "One flow from Los Angeles to Washington across Abilene beside measured traffic, links "
        f"filled to {share:g} of their speed.",
        tuple(f"{tail} > {head}" for tail, head in arcs),
        DAY,
    )
