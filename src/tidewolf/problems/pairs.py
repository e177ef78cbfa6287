"""Traffic between every two of 22 nodes of GEANT by day and by night, all of it on one network:
462 commodities whose routes are decided together.

    K = unit flows of every commodity c = (s, t), s and t among the 22, on the links that lead away
        from s: x_cl is the part of c's traffic that goes over link l
    f_t(x) = sum_c demand_t(c) / (sum of all) sum_l length_l (1 + CONGESTION usual_t(l)) x_cl
        the length that traffic travels on average, longer where the network is usually full
    g_t(x) = max_l sum_c demand_t(c) x_cl / speed_l - limit_t
        how full the fullest link is, above what it may be

One round is a quarter of an hour. The network is Geant2012 of the Topology Zoo (zoo.py) without
nodes at a single cable, left out again and again until there are none: 32 nodes, 106 links. The 22
are those at the most cables, of equals the ones that come first. Lengths of cables and weights of
nodes are drawn from a name, not from the seed. usual_t(l) is how full l is when everything takes
its shortest path.

Demands follow a gravity model: from i to j goes w_i w_j (a_i(t) a_j(t))^{1/2} exp(NOISE n_ij(t)),
1 on average in everybody's busiest hour, with a_i(t) <= 1 how awake node i is at its own hour,
clocks running up to ZONES hours later the farther a node is, and n_ij an AR(1) process of unit
variance drawn from the seed. At night parts of the equipment sleep: limit_t falls from FILL in the
busiest hour by up to NIGHT of it.

Feasible in hindsight, by construction: the flow r that `graphs.spread` spreads over all paths of
every commodity is guaranteed. A link is as fast as r needs in the busiest hour, and ROOM faster;
where r would fill a link beyond limit_t - MARGIN all the same, that part of all demands is turned
away. The cheapest flows break the limit in every round; the best fixed ones within it cost 15 %
more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import numpy as np

from tidewolf.core import batch, randomness, settings
from tidewolf.core.types import Floats
from tidewolf.functions.loads import LoadCost, MaxUtilization
from tidewolf.problems import base, zoo
from tidewolf.problems.graphs import HOUR, activity, spread
from tidewolf.sets.flows import MultiFlow
from tidewolf.sets.graph_tools import shortest

NETWORK, NODES = "Geant2012", 22
ROUNDS = 960  # the usual number of rounds
# the part of a link that may be filled in the busiest hour; how much of that is lost at night
FILL, NIGHT = 0.8, 0.5
# length over which the guaranteed flow prefers shorter paths; links are faster than it needs; room
# around it
SCALE, ROOM, MARGIN = 1.0, 1.1, 0.02
CONGESTION = 2.0  # a full link is longer by this
# standard deviation of the logarithm of a demand; how much of it stays from round to round
NOISE, MEMORY = 0.25, 0.9


@settings.validated
def pairs(rounds: base.Rounds = None, seed: base.RandomSeed = 0) -> base.Problem:
    """Route the traffic between all pairs of 22 GEANT nodes, under a limit on the fullest link.

    A round is a quarter of an hour; 960 are usual.

    Parameters
    ----------
    rounds : int, optional
        The number of rounds. None: the usual number.
    seed : int, default 0
        The seed of the random numbers.

    Returns
    -------
    Problem
        The set, the stream and what they are called.

    Raises
    ------
    InvalidInput
        If the graphs are not in the data folder (the environment variable TIDEWOLF_DATA).

    Examples
    --------
    >>> tw.problems.named("pairs") is tw.problems.pairs  # what a file calls "pairs"
    True
    """
    link_rows = without_stubs(zoo.largest_part(zoo.link_rows_of(NETWORK)))
    links = [*link_rows, *((head, tail) for tail, head in link_rows)]
    at = Counter(node for link_row in link_rows for node in link_row)
    ends = sorted(sorted(at, key=lambda node: (-at[node], node))[:NODES])
    rng = randomness.generator(0, f"pairs {NETWORK}")
    lengths = np.tile(rng.uniform(zoo.SHORTEST, 1.0, len(link_rows)), 2)
    weights = np.exp(zoo.WEIGHT * rng.standard_normal(len(ends)))
    K = MultiFlow.from_edges(links, list(permutations(ends, 2)), lengths=lengths)

    rounds = base.as_rounds(rounds, ROUNDS, K.shape[0])
    distance, _ = shortest(links, lengths, ends[0])
    later = zoo.ZONES * np.array([distance[node] for node in ends]) / max(distance.values())
    pull = weights * np.sqrt(activity(rounds, later))
    sources, targets = np.array(list(permutations(range(len(ends)), 2))).T
    most = weights[sources] * weights[targets]
    noise = randomness.autoregressive_noise(seed, "pairs traffic", rounds, most.shape, MEMORY)
    demands = np.exp(NOISE * noise) / most.mean()  # rounds stay in rows, which add up alike
    demands *= pull[:, sources] * pull[:, targets]

    guaranteed = spread_all(K, lengths)
    needed = K.loads((most / most.mean())[K.owner] * guaranteed)
    # links that no commodity can use are as slow as the slowest
    speed = ROOM / FILL * np.where(needed > 0, needed, needed[needed > 0].min())
    limit = FILL * (1 - NIGHT * (1 - activity(rounds, np.array([zoo.ZONES / 2]))[:, 0]))
    full = (loads(K, guaranteed, demands) / speed).max(axis=1)
    demands *= np.minimum(1.0, (limit - MARGIN) / full)[:, None]
    usual = loads(K, K.lmo(K.per_link(lengths)), demands) / speed
    shares, cost = demands / demands.sum(axis=1, keepdims=True), lengths * (1 + CONGESTION * usual)
    limits = MaxUtilization(K.incidence, demands, speed, K.owner, limit)
    return base.Problem(
        "pairs",
        K,
        batch.Stream(LoadCost(K.incidence, shares, cost, K.owner), limits),
        f"Flows between every two of {NODES} nodes of {NETWORK} in the Topology Zoo, no link "
        "fuller than a limit that falls at night.",
        K.names,
        24 * HOUR,
    )


def without_stubs(link_rows: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The cables that are left when nodes at a single one are left out, again and again."""
    kept, before = list(link_rows), 0
    while len(kept) != before:
        at, before = Counter(node for link_row in kept for node in link_row), len(kept)
        kept = [link_row for link_row in kept if min(at[node] for node in link_row) > 1]
    return kept


def loads(K: MultiFlow, x: Floats, demands: Floats) -> Floats:
    """What links carry of demands (rounds, commodities) that follow x, (rounds, links)."""
    from scipy.sparse import csr_array

    each = csr_array((x, (K.links, K.owner)), shape=(len(K.tails), len(K.demands)))
    # unlike a dense product, a round gets the same bits however many there are
    return np.asarray((each @ demands.T).T)


def spread_all(K: MultiFlow, lengths: Floats) -> Floats:
    flows, ends = [], np.stack([K.tails, K.heads], axis=1)
    for i, part in enumerate(np.split(K.links, K.starts[1:-1])):
        arcs = [(tail, head) for tail, head in ends[part].tolist()]
        flows.append(spread(arcs, lengths[part], int(K.sources[i]), int(K.targets[i]), SCALE))
    return np.concatenate(flows)
