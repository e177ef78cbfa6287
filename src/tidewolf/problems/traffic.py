"""Traffic on networks: routes beside traffic that comes and goes with the day, and the helpers that
generate it: by the hour, on shortest paths, by gravity, and a flow spread over all paths that lead
away from its source. A graph is a list of links (tail, head) with positive lengths; nodes are
anything hashable; see `sets.graph_tools`. One round is a quarter of an hour.

routing: one flow across the NSFNET backbone from Palo Alto to College Park

    f_t(x) = sum_e (km_e / 1000) (1 + CONGESTION load_t(e) / speed_e) x_e
        a length that grows with the load
    g_t(x) = max_e x_e - c_t(e),     c_t(e) = (FILL speed_e - load_t(e)) / DEMAND
        the part of the flow that still fits

Round 0 is Monday, 0:00 UTC. The topology is the NSFNET T1 backbone of 1988 (14 sites, 21 cables)
with great-circle lengths and modern speeds. The links that lead away from Palo Alto to College Park
form a DAG of 19 arcs and 10 paths.

Other traffic follows a gravity model on shortest paths: from i to j goes VOLUME p_i p_j
exp(NOISE n_ij(t)), p_i = sqrt(a_i(t)) m_i / sum m; m counts people, a_i(t) <= 1 is how awake they
are at their own hour and day of the week, n_ij is an AR(1) process of unit variance.

Feasible in hindsight, by construction: the flow r that `spread` spreads over all paths is
guaranteed on every link. Other traffic beyond FILL speed_e - DEMAND (r_e + MARGIN) is turned away
there, so c_t(e) >= r_e + MARGIN in every round; a link feels it in at most a few percent of the
rounds. The cheapest path, taken alone, breaks the limits in most rounds; the best fixed flow within
them costs 4 % more.

With `feasible=False` every link out of Palo Alto loses nine tenths of its speed each Monday from
6:00 to 10:00 UTC. What is left of the three, at most 0.1 FILL (20 + 10 + 10) = 3.2 Gbit/s, cannot
carry the flow: no decision meets the limits of those rounds.

zoo, geant, uunet: one flow across a graph of the Internet Topology Zoo (Knight et al. 2011)

    f_t and g_t as above, with lengths in place of km / 1000, and a flow of 1

The record knows which nodes are joined and nothing else, so the rest is drawn, from the network's
name alone: cable lengths between SHORTEST and 1, and the weight of a node, log-normal. Of a graph
in parts the largest is taken; parallel links are one cable. The flow goes between the two nodes
with the most paths on the links that lead away from one and lie on a way to the other, the nearest
such two; clocks run up to ZONES hours later the farther a node is from the first.

Other traffic from i to j is p_i p_j, p_i = weight_i sqrt(a_i(t)) exp(NOISE n_i(t)); an arc of the
flow carries BESIDE of it on average in everybody's busiest hour. A cable is as fast as that hour
and the share r of the flow need, rounded up to the next half power of 2. r is guaranteed as above.
Geant2012 has 36 arcs and 73 paths; its best fixed flow within the limits costs 15 % more than the
cheapest path, which breaks them in every round. Uunet: 42 arcs, 414 paths, 14 %.

pairs: traffic between every two of 22 nodes of GEANT, 462 commodities routed together

    K = unit flows of every commodity c = (s, t), s and t among the 22, on the links that lead away
        from s: x_cl is the part of c's traffic that goes over link l
    f_t(x) = sum_c demand_t(c) / (sum of all) sum_l length_l (1 + CONGESTION usual_t(l)) x_cl
        the length that traffic travels on average, longer where the network is usually full
    g_t(x) = max_l sum_c demand_t(c) x_cl / speed_l - limit_t
        how full the fullest link is, above what it may be

The network is Geant2012 without nodes at a single cable, left out again and again until there are
none: 32 nodes, 106 links. The 22 are those at the most cables, of equals the ones that come first.
usual_t(l) is how full l is when everything takes its shortest path.

From i to j goes w_i w_j (a_i(t) a_j(t))^{1/2} exp(NOISE n_ij(t)), 1 on average in everybody's
busiest hour. At night parts of the equipment sleep: limit_t falls from FILL in the busiest hour by
up to NIGHT of it. Feasible in hindsight: a link is as fast as the flow r of every commodity needs
in the busiest hour, and ROOM faster; where r would fill a link beyond limit_t - MARGIN all the
same, that part of all demands is turned away. The cheapest flows break the limit in every round;
the best fixed ones within it cost 15 % more.
"""

import csv
import gzip
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import permutations
from typing import Annotated, Any, TypeAlias

import numpy as np

from tidewolf.core import arguments, batch, errors, settings
from tidewolf.core.randomness import autoregressive_noise, generator
from tidewolf.core.types import Floats, Lengths, Link
from tidewolf.functions import Capacity, Linear, LoadCost, MaxUtilization
from tidewolf.problems import base
from tidewolf.sets import flows, graph_tools, graphs

Nodes: TypeAlias = Sequence[Hashable]
HOUR, DAY, ROUNDS = 4, 96, 2000  # rounds of an hour and of a day; the usual number of rounds
# the busiest local hour; at night exp(-2 SHARPNESS) of its traffic is left
PEAK, SHARPNESS = 15.0, 0.6
# the part of a link that may be filled; a full link is this many times its length longer
FILL, CONGESTION = 0.8, 2.0
# room around the guaranteed flow, in parts of the flow; how much of noise stays to the next round
MARGIN, MEMORY = 0.02, 0.9
# length over which the guaranteed flow prefers shorter paths; km for routing
SCALE = {"routing": 1500.0, "zoo": 0.3, "pairs": 1.0}
# standard deviation of the logarithm of a demand, of a node's traffic for zoo
NOISE = {"routing": 0.25, "zoo": 0.2, "pairs": 0.25}


def activity(rounds: int, later: Floats) -> Floats:
    """How active places are whose clocks are so many hours late, (rounds, places): 1 in the busiest
    hour.
    """
    hours = np.arange(rounds)[:, None] / HOUR - later
    return np.asarray(np.exp(SHARPNESS * (np.cos(2 * np.pi * (hours - PEAK) / 24) - 1)))


def both_ways(cables: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return [*cables, *((head, tail) for tail, head in cables)]


def flow_problem(
    name: str, arcs: Sequence[Link], ends: Link, costs: Floats, capacities: Floats, **about: Any
) -> base.Problem:
    K = flows.FlowPolytope.from_edges(arcs, source=ends[0], target=ends[1])
    return base.Problem(
        name, K, batch.Stream(Linear(costs), Capacity(capacities)), labels=K.names, **about
    )


def loads(links: Sequence[Link], lengths: Lengths, nodes: Nodes, traffic: Floats) -> Floats:
    """The load on every link, (rounds, links), when traffic[t, i, j] from nodes[i] to nodes[j]
    takes the shortest path.
    """
    load = np.zeros((len(links), len(traffic)))
    for i, source in enumerate(nodes):
        _, arrival = graph_tools.shortest(links, lengths, source)
        for j, node in enumerate(nodes):
            while node != source:
                load[arrival[node]] += traffic[:, i, j]
                node = links[arrival[node]][0]
    return np.ascontiguousarray(load.T)


def gravity(links: Sequence[Link], lengths: Lengths, nodes: Nodes, pull: Floats) -> Floats:
    """`loads` for traffic pull[t, i] pull[t, j] from nodes[i] to nodes[j]: a node forwards what all
    nodes behind it draw.
    """
    own = {node: pull[:, i] for i, node in enumerate(nodes)}
    load = np.zeros((len(links), len(pull)))
    for source in nodes:
        distance, arrival = graph_tools.shortest(links, lengths, source)
        drawn = {node: own[node].copy() for node in arrival}
        for node in sorted(arrival, key=lambda node: -distance[node]):
            last = arrival[node]
            load[last] += own[source] * drawn[node]
            if links[last][0] != source:
                drawn[links[last][0]] += drawn[node]
    return np.ascontiguousarray(load.T)


def spread(arcs: Sequence[Any], lengths: Lengths, source: Any, target: Any, scale: float) -> Floats:
    """Dial's split (1971) of a unit flow over links that lead away: a path of length l gets a share
    proportional to exp(-l / scale).
    """
    distance, _ = graph_tools.shortest(arcs, lengths, source)
    by_distance = sorted(range(len(arcs)), key=lambda i: distance[arcs[i][0]])
    weight = {target: 1.0}
    for i in reversed(by_distance):
        tail, head = arcs[i]
        weight[tail] = weight.get(tail, 0.0) + math.exp(-lengths[i] / scale) * weight[head]
    flow, through = np.zeros(len(arcs)), {source: 1.0}
    for i in by_distance:
        tail, head = arcs[i]
        flow[i] = through[tail] * math.exp(-lengths[i] / scale) * weight[head] / weight[tail]
        through[head] = through.get(head, 0.0) + flow[i]
    return flow


# --- routing --------------------------------------------------------------------------------------

SITES = {  # latitude, longitude, hours from UTC in winter, millions of people in the region served
    "Seattle": (47.61, -122.33, -8, 4.0), "Palo Alto": (37.44, -122.14, -8, 7.7),
    "San Diego": (32.72, -117.16, -8, 8.0), "Salt Lake City": (40.76, -111.89, -7, 2.7),
    "Boulder": (40.01, -105.27, -7, 3.6), "Houston": (29.76, -95.37, -6, 7.1),
    "Lincoln": (40.81, -96.68, -6, 1.3), "Champaign": (40.12, -88.24, -6, 9.5),
    "Pittsburgh": (40.44, -80.00, -5, 2.4), "Atlanta": (33.75, -84.39, -5, 6.1),
    "Ann Arbor": (42.28, -83.74, -5, 4.4), "Ithaca": (42.44, -76.50, -5, 2.5),
    "Princeton": (40.35, -74.66, -5, 14.0), "College Park": (38.99, -76.94, -5, 6.3),
}  # fmt: skip
CABLES = (  # two sites, and Gbit/s in either direction
    ("Seattle", "Palo Alto", 10.0), ("Seattle", "San Diego", 10.0), ("Seattle", "Champaign", 10.0),
    ("Palo Alto", "San Diego", 10.0), ("Palo Alto", "Salt Lake City", 20.0),
    ("San Diego", "Houston", 10.0), ("Salt Lake City", "Boulder", 10.0),
    ("Salt Lake City", "Ann Arbor", 10.0), ("Boulder", "Lincoln", 10.0),
    ("Boulder", "Houston", 10.0), ("Lincoln", "Champaign", 10.0), ("Houston", "Atlanta", 10.0),
    ("Houston", "College Park", 10.0), ("Champaign", "Pittsburgh", 20.0),
    ("Atlanta", "Pittsburgh", 10.0), ("Pittsburgh", "Ithaca", 10.0),
    ("Pittsburgh", "Princeton", 20.0), ("Ann Arbor", "Ithaca", 10.0),
    ("Ann Arbor", "Princeton", 10.0), ("Ithaca", "College Park", 10.0),
    ("Princeton", "College Park", 20.0),
)  # fmt: skip
SOURCE, TARGET = "Palo Alto", "College Park"

# Gbit/s: the flow; all other traffic, what stays at home included, if every site had its busiest
# hour
DEMAND, VOLUME = 6.0, 100.0
WEEKEND = 0.75  # of traffic, is left on Saturdays and Sundays
OUTAGE, LEFT = range(6 * HOUR, 10 * HOUR), 0.1  # rounds of every week; what is left of a link


@settings.validated
def routing(
    rounds: base.Rounds = None,
    seed: base.RandomSeed = 0,
    *,
    feasible: Annotated[bool, settings.Flag()] = True,
) -> base.Problem:
    """One flow across the NSFNET backbone, beside traffic with a daily pattern.

    A round is a quarter of an hour; 2,000 are usual.

    Parameters
    ----------
    rounds : int, optional
        The number of rounds. None: the usual number.
    seed : int, default 0
        The seed of the random numbers.
    feasible : bool, default True
        Whether some decision meets every round. False: a weekly outage, first in rounds 24 to
        39 counted from 0, leaves none.

    Returns
    -------
    Problem
        The set, the stream and what they are called.

    Examples
    --------
    >>> problem = tw.problems.routing(rounds=96)
    >>> problem.labels[:2]
    ('Seattle > Champaign', 'Palo Alto > San Diego')
    >>> problem.stream.constraints
    Capacity(c=<96x19 float64>)
    """
    rounds = base.as_rounds(rounds, ROUNDS, len(SITES) ** 2)
    links = both_ways([(tail, head) for tail, head, _ in CABLES])
    km = np.array([kilometres(tail, head) for tail, head in links])
    speed = np.tile([gbits for *_, gbits in CABLES], 2)
    load = loads(links, km, list(SITES), traffic(rounds, seed))

    kept = graph_tools.away(links, source=SOURCE, target=TARGET, lengths=km)
    arcs, load = [links[i] for i in kept], load[:, kept]
    km, speed = km[kept], speed[kept]
    guaranteed = spread(arcs, km, SOURCE, TARGET, SCALE["routing"]) + MARGIN
    load = np.minimum(load, FILL * speed - DEMAND * guaranteed)
    costs, usable = km / 1000 * (1 + CONGESTION * load / speed), FILL * speed
    usable = usable if feasible else usable * outage(rounds, arcs)
    return flow_problem(
        *("routing", arcs, (SOURCE, TARGET), costs, np.maximum(0, usable - load) / DEMAND),
        title=f"One flow from {SOURCE} to {TARGET} across the NSFNET backbone beside diurnal "
        f"traffic{'' if feasible else ' and weekly outages'}.",
        period=DAY,
        node_places={site: (east, north) for site, (north, east, *_) in SITES.items()},
    )


def kilometres(here: str, there: str) -> float:
    (north, east), (north2, east2) = (map(math.radians, SITES[site][:2]) for site in (here, there))
    h = (
        math.sin((north2 - north) / 2) ** 2
        + math.cos(north) * math.cos(north2) * math.sin((east2 - east) / 2) ** 2
    )
    return 2 * 6371 * math.asin(math.sqrt(h))


def traffic(rounds: int, seed: int) -> Floats:
    """What flows from every site to every other, (rounds, sites, sites), in Gbit/s."""
    zone, people = np.array(list(SITES.values())).T[2:]
    weekend = (np.arange(rounds)[:, None] / HOUR + zone) // 24 % 7 >= 5
    awake = activity(rounds, -zone) * np.where(weekend, WEEKEND, 1.0)
    pull = np.sqrt(awake) * people / people.sum()
    noise = autoregressive_noise(seed, "routing traffic", rounds, (len(SITES), len(SITES)), MEMORY)
    volume: Floats = VOLUME * pull[:, :, None] * pull[:, None, :] * np.exp(NOISE["routing"] * noise)
    return volume


def outage(rounds: int, arcs: list[tuple[str, str]]) -> Floats:
    """What is left of every arc in every round, (rounds, arcs)."""
    down = np.isin(np.arange(rounds) % (7 * DAY), OUTAGE)
    return np.where(down[:, None] & np.array([tail == SOURCE for tail, _ in arcs]), LEFT, 1.0)


# --- the Topology Zoo -----------------------------------------------------------------------------

# the shortest cable, the longest being 1; standard deviation of the logarithm of a node's weight
SHORTEST, WEIGHT = 0.1, 0.7
BESIDE = 1.5  # other traffic, in flows
ZONES = 4.0  # hours between the last clocks


@settings.validated
def zoo(
    rounds: base.Rounds = None,
    seed: base.RandomSeed = 0,
    *,
    network: Annotated[str, settings.Text()] = "Geant2012",
) -> base.Problem:
    """One flow across an operator's network of the Topology Zoo beside generated traffic.

    A round is a quarter of an hour; 2,000 are usual.

    Parameters
    ----------
    rounds : int, optional
        The number of rounds. None: the usual number.
    seed : int, default 0
        The seed of the random numbers.
    network : str, default 'Geant2012'
        A name in the collection, such as "Geant2012", "Uunet" or "Dfn".

    Returns
    -------
    Problem
        The set, the stream and what they are called.

    Raises
    ------
    InvalidInput
        If the graphs are not in the data folder (the environment variable TIDEWOLF_DATA), or
        there is no such network among them.

    Examples
    --------
    >>> tw.problems.named("zoo") is tw.problems.zoo  # what a file calls "zoo"
    True
    """
    return _flow("zoo", rounds, seed, network)


@settings.validated
def geant(rounds: base.Rounds = None, seed: base.RandomSeed = 0) -> base.Problem:
    """One flow across the GEANT research backbone of 2012 beside generated traffic.

    A round is a quarter of an hour; 2,000 are usual.

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
    >>> tw.problems.named("geant") is tw.problems.geant  # what a file calls "geant"
    True
    """
    return _flow("geant", rounds, seed, "Geant2012")


@settings.validated
def uunet(rounds: base.Rounds = None, seed: base.RandomSeed = 0) -> base.Problem:
    """One flow across the UUNET backbone beside generated traffic.

    A round is a quarter of an hour; 2,000 are usual.

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
    >>> tw.problems.named("uunet") is tw.problems.uunet  # what a file calls "uunet"
    True
    """
    return _flow("uunet", rounds, seed, "Uunet")


def _flow(name: str, rounds: int | None, seed: int, network: str) -> base.Problem:
    cables = largest_part(cables_of(network))
    links = both_ways(cables)
    nodes = sorted({node for cable in cables for node in cable})
    rounds = base.as_rounds(rounds, ROUNDS, 2 * len(nodes))
    rng = generator(0, f"zoo {network}")
    lengths = np.tile(rng.uniform(SHORTEST, 1.0, len(cables)), 2)
    weights = np.exp(WEIGHT * rng.standard_normal(len(nodes)))
    source, target, paths = ends(links, lengths, nodes)
    if paths < 2:
        raise errors.InvalidInput(f"{network} has one path between any two nodes; take another.")

    kept = graph_tools.away(links, source=source, target=target, lengths=lengths)
    arcs, length = [links[i] for i in kept], lengths[kept]
    distance, _ = graph_tools.shortest(links, lengths, source)
    later = ZONES * np.array([distance[node] for node in nodes]) / max(distance.values())
    busiest = gravity(links, lengths, nodes, weights[None, :])[0, kept]
    noise = autoregressive_noise(seed, f"zoo {network} traffic", rounds, (len(nodes),), MEMORY)
    pull = weights * np.sqrt(activity(rounds, later)) * np.exp(NOISE["zoo"] * noise)
    load = gravity(links, lengths, nodes, pull)[:, kept]
    unit = BESIDE / float(busiest.mean())
    guaranteed = spread(arcs, length, source, target, SCALE["zoo"]) + MARGIN
    speed = 2 ** (np.ceil(2 * np.log2((unit * busiest + guaranteed) / FILL)) / 2)
    load = np.minimum(unit * load, FILL * speed - guaranteed)
    costs = length * (1 + CONGESTION * load / speed)
    return flow_problem(
        *(name, arcs, (source, target), costs, FILL * speed - load),
        title=f"One flow from node {source} to node {target} of {network} in the Topology Zoo "
        "beside generated diurnal traffic.",
        period=DAY,
    )


def cables_of(network: str) -> list[tuple[int, int]]:
    with base.reading(base.RECORDS["zoo"]) as path, gzip.open(path, "rt", newline="") as file:
        rows = [(row["net"], int(row["u"]), int(row["v"])) for row in csv.DictReader(file)]
    if not arguments.is_text(network, *{name for name, _, _ in rows}):
        there = f"{arguments.shown(network)} in {path}; there are Geant2012, Uunet, Dfn, ..."
        raise errors.InvalidInput(f"There is no network called {there}", setting="network")
    joined = {(min(u, v), max(u, v)) for name, u, v in rows if name == network and u != v}
    errors.require(
        joined, errors.InvalidInput, f"The network {network} has no link between two nodes."
    )
    return sorted(joined)


def largest_part(cables: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    nodes, tails, heads = graphs.number_nodes(cables)
    part = graphs.connected_parts(tails, heads, len(nodes))
    return [cables[i] for i in np.flatnonzero(part[tails] == np.bincount(part).argmax()).tolist()]


def ends(links: Sequence[Link], lengths: Floats, nodes: Nodes) -> tuple[Hashable, Hashable, int]:
    """The two nodes with the most paths on links that lead away from the first, the nearest among
    several such, and how many paths.
    """
    best, chosen = (0, 0.0), (nodes[0], nodes[0])
    for source in nodes:
        distance, _ = graph_tools.shortest(links, lengths, source)
        away = [(u, v) for u, v in links if u in distance and distance[v] > distance[u]]
        counts = dict.fromkeys(distance, 0) | {source: 1}
        for tail, head in sorted(away, key=lambda link: distance[link[0]]):
            counts[head] += counts[tail]
        target = max(counts, key=lambda node: (counts[node], -distance[node]))
        if (found := (counts[target], -distance[target])) > best:
            best, chosen = found, (source, target)
    return *chosen, best[0]


# --- all pairs ------------------------------------------------------------------------------------

NETWORK, NODES = "Geant2012", 22
# how much of a link's FILL is lost at night; links are faster than the guaranteed flow needs
NIGHT, ROOM = 0.5, 1.1


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
    cables = without_stubs(largest_part(cables_of(NETWORK)))
    links = both_ways(cables)
    at = Counter(node for cable in cables for node in cable)
    ends = sorted(sorted(at, key=lambda node: (-at[node], node))[:NODES])
    rng = generator(0, f"pairs {NETWORK}")
    lengths = np.tile(rng.uniform(SHORTEST, 1.0, len(cables)), 2)
    weights = np.exp(WEIGHT * rng.standard_normal(len(ends)))
    K = flows.MultiFlow.from_edges(links, list(permutations(ends, 2)), lengths=lengths)

    rounds = base.as_rounds(rounds, 960, K.shape[0])
    distance, _ = graph_tools.shortest(links, lengths, ends[0])
    later = ZONES * np.array([distance[node] for node in ends]) / max(distance.values())
    most, demands = _traffic_of_pairs(rounds, seed, weights, later)
    guaranteed = spread_all(K, lengths)
    needed = K.loads((most / most.mean())[K.owner] * guaranteed)
    # links that no commodity can use are as slow as the slowest
    speed = ROOM / FILL * np.where(needed > 0, needed, needed[needed > 0].min())
    limit = FILL * (1 - NIGHT * (1 - activity(rounds, np.array([ZONES / 2]))[:, 0]))
    full = (carried(K, guaranteed, demands) / speed).max(axis=1)
    demands *= np.minimum(1.0, (limit - MARGIN) / full)[:, None]
    usual = carried(K, K.lmo(K.per_link(lengths)), demands) / speed
    shares, cost = demands / demands.sum(axis=1, keepdims=True), lengths * (1 + CONGESTION * usual)
    limits = MaxUtilization(K.incidence, demands, speed, K.owner, limit)
    return base.Problem(
        "pairs",
        K,
        batch.Stream(LoadCost(K.incidence, shares, cost, K.owner), limits),
        f"Flows between every two of {NODES} nodes of {NETWORK} in the Topology Zoo, no link "
        "fuller than a limit that falls at night.",
        K.names,
        DAY,
    )


def _traffic_of_pairs(
    rounds: int, seed: int, weights: Floats, later: Floats
) -> tuple[Floats, Floats]:
    """The usual demand of each pair, and that of every round in units of their mean."""
    pull = weights * np.sqrt(activity(rounds, later))
    sources, targets = np.array(list(permutations(range(len(weights)), 2))).T
    most = weights[sources] * weights[targets]
    noise = autoregressive_noise(seed, "pairs traffic", rounds, most.shape, MEMORY)
    # rounds stay in rows, which add up alike
    demands = np.exp(NOISE["pairs"] * noise) / most.mean()
    demands *= pull[:, sources] * pull[:, targets]
    return most, demands


def without_stubs(cables: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The cables that are left when nodes at a single one are left out, again and again."""
    kept, before = list(cables), 0
    while len(kept) != before:
        at, before = Counter(node for cable in kept for node in cable), len(kept)
        kept = [cable for cable in kept if min(at[node] for node in cable) > 1]
    return kept


def carried(K: flows.MultiFlow, x: Floats, demands: Floats) -> Floats:
    """What links carry of demands (rounds, commodities) that follow x, (rounds, links)."""
    from scipy.sparse import csr_array

    each = csr_array((x, (K.links, K.owner)), shape=(len(K.tails), len(K.demands)))
    # unlike a dense product, a round gets the same bits however many there are
    return np.asarray((each @ demands.T).T)


def spread_all(K: flows.MultiFlow, lengths: Floats) -> Floats:
    parts, ends = list[Floats](), np.stack([K.tails, K.heads], axis=1)
    for i, part in enumerate(np.split(K.links, K.starts[1:-1])):
        arcs = [(tail, head) for tail, head in ends[part].tolist()]
        parts.append(
            spread(arcs, lengths[part], int(K.sources[i]), int(K.targets[i]), SCALE["pairs"])
        )
    return np.concatenate(parts)
