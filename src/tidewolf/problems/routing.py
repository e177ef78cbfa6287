"""Routing across the NSFNET backbone by day and by night: one flow from Palo Alto to College Park
beside everybody else's traffic.

    f_t(x) = sum_e (km_e / 1000) (1 + CONGESTION load_t(e) / speed_e) x_e
        a length that grows with the load
    g_t(x) = max_e x_e - c_t(e),     c_t(e) = (FILL speed_e - load_t(e)) / DEMAND
        the part of the flow that still fits

One round is a quarter of an hour; round 0 is Monday, 0:00 UTC. The topology is the NSFNET T1
backbone of 1988 (14 sites, 21 cables) with great-circle lengths and modern speeds. The links that
lead away from Palo Alto to College Park form a DAG of 19 arcs and 10 paths.

Other traffic follows a gravity model on shortest paths: from i to j goes VOLUME p_i p_j
exp(NOISE n_ij(t)), p_i = sqrt(a_i(t)) m_i / sum m; m counts people, a_i(t) <= 1 is how awake they
are at their own hour and day of the week, n_ij is an AR(1) process of unit variance.

Feasible in hindsight, by construction: the flow r that `graphs.spread` spreads over all paths is
guaranteed on every link. Other traffic beyond FILL speed_e - DEMAND (r_e + MARGIN) is turned away
there, so c_t(e) >= r_e + MARGIN in every round; a link feels it in at most a few percent of the
rounds. The cheapest path, taken alone, breaks the limits in most rounds; the best fixed flow within
them costs 4 % more.

With `feasible=False` every link out of Palo Alto loses nine tenths of its speed each Monday from
6:00 to 10:00 UTC. What is left of the three, at most 0.1 FILL (20 + 10 + 10) = 3.2 Gbit/s, cannot
carry the flow: no decision meets the limits of those rounds.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from tidewolf.core.randomness import autoregressive_noise
from tidewolf.core.settings import Flag, validated
from tidewolf.core.types import Floats
from tidewolf.problems.base import Problem, RandomSeed, Rounds, as_rounds
from tidewolf.problems.graphs import HOUR, activity, flow_problem, loads, spread
from tidewolf.sets.graph_tools import away

SITES = {  # latitude, longitude, hours from UTC in winter, millions of people in the region served
    "Seattle": (47.61, -122.33, -8, 4.0),
    "Palo Alto": (37.44, -122.14, -8, 7.7),
    "San Diego": (32.72, -117.16, -8, 8.0),
    "Salt Lake City": (40.76, -111.89, -7, 2.7),
    "Boulder": (40.01, -105.27, -7, 3.6),
    "Houston": (29.76, -95.37, -6, 7.1),
    "Lincoln": (40.81, -96.68, -6, 1.3),
    "Champaign": (40.12, -88.24, -6, 9.5),
    "Pittsburgh": (40.44, -80.00, -5, 2.4),
    "Atlanta": (33.75, -84.39, -5, 6.1),
    "Ann Arbor": (42.28, -83.74, -5, 4.4),
    "Ithaca": (42.44, -76.50, -5, 2.5),
    "Princeton": (40.35, -74.66, -5, 14.0),
    "College Park": (38.99, -76.94, -5, 6.3),
}
LINKS = {
    "Seattle": ("Palo Alto", "San Diego", "Champaign"),
    "Palo Alto": ("San Diego", "Salt Lake City"),
    "San Diego": ("Houston",),
    "Salt Lake City": ("Boulder", "Ann Arbor"),
    "Boulder": ("Lincoln", "Houston"),
    "Lincoln": ("Champaign",),
    "Houston": ("Atlanta", "College Park"),
    "Champaign": ("Pittsburgh",),
    "Atlanta": ("Pittsburgh",),
    "Pittsburgh": ("Ithaca", "Princeton"),
    "Ann Arbor": ("Ithaca", "Princeton"),
    "Ithaca": ("College Park",),
    "Princeton": ("College Park",),
}
SPEED, FAST = 10.0, 20.0  # Gbit/s in either direction; of these
FAST_LINKS = {
    ("Palo Alto", "Salt Lake City"),
    ("Champaign", "Pittsburgh"),
    ("Pittsburgh", "Princeton"),
    ("Princeton", "College Park"),
}
SOURCE, TARGET = "Palo Alto", "College Park"

ROUNDS, DAY = 2000, 24 * HOUR  # the usual number of rounds; those of a day
# Gbit/s: the flow; all other traffic, what stays at home included, if every site had its busiest
# hour
DEMAND, VOLUME = 6.0, 100.0
# the part of a link that may be filled; a full link is this many times its length longer
FILL, CONGESTION = 0.8, 2.0
# km over which the guaranteed flow prefers shorter paths; room around it, in parts of the flow
SCALE, MARGIN = 1500.0, 0.02
WEEKEND = 0.75  # of traffic, is left on Saturdays and Sundays
# standard deviation of the logarithm of a demand; how much of it stays from round to round
NOISE, MEMORY = 0.25, 0.9
OUTAGE, LEFT = range(6 * HOUR, 10 * HOUR), 0.1  # rounds of every week; what is left of a link


@validated
def routing(
    rounds: Rounds = None,
    seed: RandomSeed = 0,
    *,
    feasible: Annotated[bool, Flag()] = True,
) -> Problem:
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
    rounds = as_rounds(rounds, ROUNDS, len(SITES) ** 2)
    one_way = [(tail, head) for tail, heads in LINKS.items() for head in heads]
    links = [*one_way, *((head, tail) for tail, head in one_way)]
    km = np.array([kilometres(tail, head) for tail, head in links])
    speed = np.tile([FAST if link in FAST_LINKS else SPEED for link in one_way], 2)
    load = loads(links, km, list(SITES), traffic(rounds, seed))

    kept = away(links, source=SOURCE, target=TARGET, lengths=km)
    arcs, load = [links[i] for i in kept], load[:, kept]
    km, speed = km[kept], speed[kept]
    guaranteed = spread(arcs, km, SOURCE, TARGET, SCALE) + MARGIN
    load = np.minimum(load, FILL * speed - DEMAND * guaranteed)
    usable = FILL * speed if feasible else FILL * speed * outage(rounds, arcs)
    return flow_problem(
        "routing",
        arcs,
        (SOURCE, TARGET),
        km / 1000 * (1 + CONGESTION * load / speed),
        np.maximum(0, usable - load) / DEMAND,
        f"One flow from {SOURCE} to {TARGET} across the NSFNET backbone beside diurnal "
        f"traffic{'' if feasible else ' and weekly outages'}.",
        DAY,
        node_places={site: (east, north) for site, (north, east, *_) in SITES.items()},
    )


def kilometres(here: str, there: str) -> float:
    """The length of the great circle between two sites (haversine)."""
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
    volume: Floats = VOLUME * pull[:, :, None] * pull[:, None, :] * np.exp(NOISE * noise)
    return volume


def outage(rounds: int, arcs: list[tuple[str, str]]) -> Floats:
    """What is left of every arc in every round, (rounds, arcs)."""
    down = np.isin(np.arange(rounds) % (7 * DAY), OUTAGE)
    leaving = np.array([tail == SOURCE for tail, _ in arcs])
    return np.where(down[:, None] & leaving, LEFT, 1.0)
