"""Flows on the graphs of the Internet Topology Zoo (Knight et al. 2011), beside generated traffic
that comes and goes with the day.

    f_t(x) = sum_e length_e (1 + CONGESTION load_t(e) / speed_e) x_e
        a length that grows with the load
    g_t(x) = max_e x_e - c_t(e),     c_t(e) = FILL speed_e - load_t(e)
        the part of the flow that still fits; the flow is 1

One round is a quarter of an hour. The record knows which nodes are joined and nothing else, so the
rest is drawn, from the network's name alone: link_row lengths between SHORTEST and 1, and the
weight of a node, log-normal. Of a graph in parts the largest is taken; parallel links are one
link_row. The flow goes between the two nodes with the most paths on the links that lead away from
one and lie on a way to the other, the nearest such two; clocks run up to ZONES hours later the
farther a node is from the first.

Other traffic follows a gravity model on shortest paths: from i to j goes p_i p_j, p_i = weight_i
sqrt(a_i(t)) exp(NOISE n_i(t)), with a_i(t) <= 1 how awake node i is at its own hour and n_i an
AR(1) process of unit variance drawn from the seed; an arc of the flow carries VOLUME of it on
average in everybody's busiest hour. A link_row is as fast as that hour and the share r of the flow
need, rounded up to the next half power of 2.

Feasible in hindsight, by construction: the flow r that `graphs.spread` spreads over all paths is
guaranteed on every link. Other traffic beyond FILL speed_e - r_e - MARGIN is turned away there, so
c_t(e) >= r_e + MARGIN in every round. Geant2012 has 36 arcs and 73 paths; its best fixed flow
within the limits costs 15 % more than the cheapest path, which breaks them in every round. Uunet:
42 arcs, 414 paths, 14 %.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Hashable, Sequence
from typing import Annotated

import numpy as np

from tidewolf.core import arguments, errors, settings
from tidewolf.core.randomness import autoregressive_noise, generator
from tidewolf.core.types import Floats, Link
from tidewolf.problems import base, data
from tidewolf.problems.graphs import HOUR, activity, flow_problem, gravity, path_counts, spread
from tidewolf.sets import graph_tools, graphs

ROUNDS = 2000  # the usual number of rounds
# the shortest cable, the longest being 1; standard deviation of the logarithm of a node's weight
SHORTEST, WEIGHT = 0.1, 0.7
# other traffic, in flows; the part of a link that may be filled; a full link is longer by this
VOLUME, FILL, CONGESTION = 1.5, 0.8, 2.0
# length over which the guaranteed flow prefers shorter paths; room around it
SCALE, MARGIN = 0.3, 0.02
ZONES = 4.0  # hours between the last clocks
# standard deviation of the logarithm of a node's traffic; how much of it stays from round to round
NOISE, MEMORY = 0.2, 0.9


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
    link_rows = largest_part(link_rows_of(network))
    links = [*link_rows, *((head, tail) for tail, head in link_rows)]
    nodes = sorted({node for link_row in link_rows for node in link_row})
    rounds = base.as_rounds(rounds, ROUNDS, 2 * len(nodes))
    rng = generator(0, f"zoo {network}")
    lengths = np.tile(rng.uniform(SHORTEST, 1.0, len(link_rows)), 2)
    weights = np.exp(WEIGHT * rng.standard_normal(len(nodes)))
    source, target, paths = ends(links, lengths, nodes)
    if paths < 2:
        single = f"The network {network} has a single path between any two nodes"
        raise errors.InvalidInput(f"{single}, so there is nothing to decide; take another.")

    kept = graph_tools.away(links, source=source, target=target, lengths=lengths)
    arcs, length = [links[i] for i in kept], lengths[kept]
    distance, _ = graph_tools.shortest(links, lengths, source)
    later = ZONES * np.array([distance[node] for node in nodes]) / max(distance.values())
    awake = activity(rounds, later)
    busiest = gravity(links, lengths, nodes, weights[None, :])[0, kept]
    noise = autoregressive_noise(seed, f"zoo {network} traffic", rounds, (len(nodes),), MEMORY)
    load = gravity(links, lengths, nodes, weights * np.sqrt(awake) * np.exp(NOISE * noise))[:, kept]
    unit = VOLUME / float(busiest.mean())
    guaranteed = spread(arcs, length, source, target, SCALE) + MARGIN
    speed = 2 ** (np.ceil(2 * np.log2((unit * busiest + guaranteed) / FILL)) / 2)
    load = np.minimum(unit * load, FILL * speed - guaranteed)
    return flow_problem(
        name,
        arcs,
        (source, target),
        length * (1 + CONGESTION * load / speed),
        FILL * speed - load,
        f"One flow from node {source} to node {target} of {network} in the Topology Zoo beside "
        "generated diurnal traffic.",
        24 * HOUR,
    )


def link_rows_of(network: str) -> list[tuple[int, int]]:
    """The pairs of nodes that some link joins, each once."""
    with data.reading(data.RECORDS["zoo"]) as path, gzip.open(path, "rt", newline="") as file:
        rows = [(row["net"], int(row["u"]), int(row["v"])) for row in csv.DictReader(file)]
    names = {name for name, _, _ in rows}
    if not arguments.is_text(network, *names):
        there = f"{path}; it has {len(names)}, such as Geant2012, Uunet and Dfn"
        sentence = f"There is no network called {arguments.shown(network)} in {there}."
        raise errors.InvalidInput(sentence, setting="network")
    joined = {(min(u, v), max(u, v)) for name, u, v in rows if name == network and u != v}
    if not joined:
        raise errors.InvalidInput(f"The network {network} has no link between two nodes.")
    return sorted(joined)


def largest_part(link_rows: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    nodes, tails, heads = graphs.number_nodes(link_rows)
    part = graphs.connected_parts(tails, heads, len(nodes))
    largest = np.bincount(part).argmax()
    return [link_rows[i] for i in np.flatnonzero(part[tails] == largest).tolist()]


def ends(
    links: Sequence[Link], lengths: Floats, nodes: Sequence[Hashable]
) -> tuple[Hashable, Hashable, int]:
    """The two nodes with the most paths on links that lead away from the first, the nearest among
    several such, and how many paths.
    """
    best, chosen = (0, 0.0), (nodes[0], nodes[0])
    for source in nodes:
        distance, _ = graph_tools.shortest(links, lengths, source)
        counts = path_counts(links, distance, source)
        target = max(counts, key=lambda node: (counts[node], -distance[node]))
        if (found := (counts[target], -distance[target])) > best:
            best, chosen = found, (source, target)
    return *chosen, best[0]
