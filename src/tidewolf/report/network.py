"""The network of flows: what every link carries, how full it is, and the paths in use.

    mean utilisation of a link   = its mean load / its mean capacity, over all rounds
    worst utilisation            = the largest load / capacity of any round

A link is as wide as its mean load and as warm as its mean utilisation; links that lead both ways
bend apart. Nodes are drawn on a map if the coordinates of all are known. Else distances on paper
follow distances in the graph (networkx), turned so that flow goes from left to right; the same
graph is always laid out the same.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.types import Floats
from tidewolf.evaluation.formatting import number, percent
from tidewolf.evaluation.run import Run
from tidewolf.functions import Capacity, LoadLimit, MaxUtilization
from tidewolf.functions.loads import share
from tidewolf.networks.network import Network, routes_of
from tidewolf.problems import Problem
from tidewolf.report import charts
from tidewolf.report.charts import LEVELS, Chart, Clock, RunStyle, ShownRun, Table, table
from tidewolf.sets import CapacitatedFlow, FlowPolytope, MultiFlow

# Of a larger network only those links are drawn that carry most.
LINKS = 240
# With more nodes, names appear at the pointer alone.
NAMED = 30
# How many paths, and how many of the fullest links, are listed.
PATHS, FULLEST = 12, 8
# A load below this share of the largest counts as none; a path below this share is not listed.
NEGLIGIBLE = 0.005


class Link(NamedTuple):
    tail: int
    head: int
    name: str
    load: float
    capacity: float | None = None
    # Mean utilisation; None if the link has no capacity.
    used: float | None = None
    worst: float | None = None
    when: str = ""
    cut: str = ""

    @property
    def words(self) -> str:
        if self.cut:
            return f"{self.name}: not used, for it {self.cut}"
        used = "" if self.used is None else f" of {number(self.capacity)}, {_used(self.used)} used"
        worst = "" if self.worst is None else f"; at most {_used(self.worst)}, {self.when}"
        return f"{self.name}: mean load {number(self.load)}{used}{worst}"


def _graph(K: Any, net: Network | None) -> tuple[Any, ...] | None:
    """Nodes, sources, targets, pairs of ends and names of links of a set of flows; None for other
    sets.
    """
    if net is not None:
        at = {node: i for i, node in enumerate(net.nodes)}
        sources, targets = (
            {at[node] for demand in net.demands for node in getattr(demand, side)}
            for side in ("sources", "targets")
        )
        pairs = [(at[tail], at[head]) for tail, head in net.links]
        return tuple(map(str, net.nodes)), sources, targets, pairs, net.link_names
    graph, ends = K, list[Any]()
    if isinstance(K, FlowPolytope):
        ends = [{int(K.source)}, {int(K.target)}]
    elif isinstance(K, MultiFlow):
        ends = [set(K.sources.tolist()), set(K.targets.tolist())]
    elif isinstance(K, CapacitatedFlow):
        graph = K.network
        ends = [set(np.flatnonzero(sign * graph.supply > 0).tolist()) for sign in (1, -1)]
    else:
        return None
    nodes = tuple(map(str, graph.nodes))
    pairs = list(zip(graph.tails.tolist(), graph.heads.tolist(), strict=True))
    return nodes, *ends, pairs, [f"{nodes[tail]} > {nodes[head]}" for tail, head in pairs]


def links_of(run: Run, clock: Clock, net: Network | None = None) -> tuple[Any, ...] | None:
    """Nodes, sources, targets and links of a run's set of flows, loaded by the mean points of the
    run's parts; None for other sets.
    """
    K: Any = run.learner.K
    losses: Any = run.stream.losses
    limits: Any = run.stream.constraints
    graph, kept = _graph(K, net), run.trajectory
    if graph is None or kept is None:
        return None
    *ends, pairs, names = graph
    # the capacities of some links, and the demands that scale loads, rounds first
    unit = 1.0 if net is None else net.unit
    limited: Any = slice(None)
    capacities, demands = np.full((1, 1), np.inf), None
    if isinstance(limits, LoadLimit) and net is not None:
        capacities, demands = limits.capacities, np.asarray(limits.demands) * unit
        limited = [net.link_names.index(name) for name in limits.names]
    elif isinstance(limits, Capacity) and net is not None:
        capacities, limited = limits.c, np.asarray(net.incidence.tocsc().indices)
    elif isinstance(losses, MaxUtilization) and losses.names and net is not None:
        capacities, demands = np.atleast_2d(losses.capacities), np.asarray(losses.demands)
        limited, unit = [net.link_names.index(name) for name in losses.names], 1.0
    elif isinstance(limits, MaxUtilization) and isinstance(K, MultiFlow):
        capacities = np.atleast_2d(limits.capacities)
        demands = np.asarray(limits.demands)[:, np.asarray(limits.pairs)]
    elif isinstance(limits, Capacity) and not isinstance(K, MultiFlow):
        capacities = np.asarray(limits.c).reshape(-1, len(pairs))

    def load(x: Floats, mean: Floats | None) -> Floats:
        if net is not None:
            return net.loads(x, mean)
        if mean is not None:
            return np.asarray(K.incidence @ (mean * x))
        return np.asarray(K.loads(x)) if isinstance(K, MultiFlow) else x

    parts = [slice(*ends) for ends in pairwise(kept.edges.tolist())]
    means = [None if demands is None else demands[part].mean(axis=0) for part in parts]
    loads = np.array([load(*each) for each in zip(kept.means, means, strict=True)])
    every = np.broadcast_to(capacities, (run.rounds, np.shape(capacities)[1]))
    room = np.full(loads.shape, np.inf)
    room[:, limited] = unit * np.array([every[part].mean(axis=0) for part in parts])
    mean, limit = (np.average(each, axis=0, weights=np.diff(kept.edges)) for each in (loads, room))
    used, worst, when = share(mean, limit), *np.zeros((2, len(pairs)))
    peaks = run.peaks if np.isfinite(limit).any() else None
    if peaks is not None:
        worst[limited], when[limited] = peaks.used, peaks.when
    cut = {} if net is None else {each.link: each.reason for each in net.cut}
    links = []
    for e, ((tail, head), name) in enumerate(zip(pairs, names, strict=True)):
        known: dict[str, Any] = {"load": 0.0, "cut": cut[name]} if name in cut else {}
        if not known and np.isfinite(limit[e]):
            known = {"capacity": float(limit[e]), "used": float(used[e])}
            if peaks is not None:
                known |= {"worst": float(worst[e]), "when": clock.when(int(when[e]))}
        links.append(Link(tail, head, name, **({"load": float(mean[e])} | known)))
    return *ends, links


class DrawnNetwork(NamedTuple):
    nodes: Sequence[str]
    ends: frozenset[int]
    links: Sequence[Link]
    places: Floats
    size: tuple[float, float]
    most: float

    @property
    def limited(self) -> bool:
        """Whether colours mean utilisation; without capacities they mean loads."""
        return any(link.used is not None for link in self.links)


def networks_of(
    shown: Sequence[ShownRun], clock: Clock, problem: Problem | None = None
) -> list[tuple[ShownRun, DrawnNetwork]]:
    """The network of each run, with the same links and places for all: a map if the problem has the
    longitude and latitude of every node; nothing for sets without one.
    """
    net, where = (None, {}) if problem is None else (problem.network, problem.node_places)
    known = [(each, its) for each in shown if (its := links_of(each.run, clock, net)) is not None]
    if not known:
        return []
    (_, (names, sources, targets, first)), *_ = known
    loads = np.max([[abs(link.load) for link in its[-1]] for _, its in known], axis=0)
    drawn = np.arange(len(loads))
    if len(loads) > LINKS:
        drawn = np.sort(np.argsort(-loads, kind="stable")[:LINKS])
        drawn = drawn[loads[drawn] >= NEGLIGIBLE * loads.max()]
    pairs = np.array([first[e][:2] for e in drawn])
    nodes, numbers = np.unique(pairs, return_inverse=True)
    ends: Any = numbers.reshape(pairs.shape).tolist()
    begin, stop = ([i for i, v in enumerate(nodes) if v in side] for side in (sources, targets))
    called, most = [names[i] for i in nodes], float(loads.max(initial=0.0)) or 1.0
    if {*called} <= where.keys():
        size, places = _map([where[name] for name in called])
    else:
        size = (860.0, min(max(180.0, 90.0 + 24.0 * len(nodes)), 600.0))
        places = node_places(len(nodes), ends, begin, stop)
        places = np.array([90.0, 30.0]) + places * (np.array(size) - [180.0, 60.0])
    found, both = [], frozenset((*begin, *stop))
    for each, (*_, its) in known:
        links = [its[e]._replace(tail=i, head=j) for e, (i, j) in zip(drawn, ends, strict=True)]
        found.append((each, DrawnNetwork(called, both, links, places, size, most)))
    return found


def _map(where: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], Floats]:
    """The size of a map, and its points in pixels: equirectangular, true at the mean latitude."""
    east, north = np.array(where).T
    points = np.column_stack([east * np.cos(np.radians(north.mean())), -north])
    points -= points.min(axis=0)
    span = np.maximum(points.max(axis=0), 1e-9)
    scale = float((np.array([680.0, 480.0]) / span).min())
    size = (860.0, max(180.0, scale * float(span[1]) + 100.0))
    return size, (np.array(size) - scale * span) / 2.0 + scale * points


def node_places(
    nodes: int, pairs: Sequence[Sequence[int]], sources: Sequence[int], targets: Sequence[int]
) -> Floats:
    """A place in the unit square for each node, y downwards: distances there are like the numbers
    of links between nodes (Kamada and Kawai 1989).
    """
    import networkx

    graph = networkx.empty_graph(nodes)
    graph.add_edges_from(pairs)
    apart = networkx.floyd_warshall_numpy(graph)
    # parts of the graph that no link joins are a little farther apart than the ends of a part
    apart[np.isinf(apart)] = 1.0 + apart[np.isfinite(apart)].max()
    distances = {i: dict(enumerate(row)) for i, row in enumerate(apart.tolist())}
    places = np.array(list(networkx.kamada_kawai_layout(graph, distances).values()))
    sides = [places[list(side or [0])].mean(axis=0) for side in (sources, targets)]
    way = sides[1] - sides[0]
    if not sources or not targets or np.hypot(*way) < 0.02:
        # flow leads many ways at once: the longest axis lies across
        way = np.linalg.eigh(places.T @ places)[1][:, -1]
        way = way * (np.sign(way[np.abs(way).argmax()]) or 1.0)
    cosine, sine = way / max(float(np.hypot(*way)), 1e-12)
    places = places @ np.array([[cosine, -sine], [sine, cosine]])
    span = np.ptp(places, axis=0)
    wide = span > 1e-6
    return np.where(wide, (places - places.min(axis=0)) / np.where(wide, span, 1.0), 0.5)


def draw_network(axes: Any, palette: charts.Palette, drawn: DrawnNetwork) -> dict[str, Any]:
    from matplotlib.patches import FancyArrowPatch

    axes.set_xlim(0.0, drawn.size[0])
    axes.set_ylim(drawn.size[1], 0.0)
    axes.set_axis_off()
    pairs = {(link.tail, link.head) for link in drawn.links}
    seen, dots = Counter[tuple[int, int]](), list[tuple[Floats, str, str]]()
    for link in sorted(drawn.links, key=lambda link: abs(link.load)):
        begin, end = drawn.places[link.tail], drawn.places[link.head]
        bend = 0.12 * ((link.head, link.tail) in pairs) + 0.15 * seen[link.tail, link.head]
        seen[link.tail, link.head] += 1
        share = abs(link.load) / drawn.most
        level = round(LEVELS * share * 0.9)
        if drawn.limited:
            used = link.used or 0.0
            level = LEVELS if used > 1.0 + 1e-9 else min(LEVELS - 1, int(LEVELS * max(0.0, used)))
        idle = share < NEGLIGIBLE
        colored = not idle and (link.used is not None or not drawn.limited)
        color = palette.use[level] if colored else palette.ink
        way, dashes = f"arc3,rad={bend}", (0, (3, 4)) if link.cut else "solid"
        strength, width = (0.25, 1.4) if idle else (1.0, 1.6 + 4.0 * share)
        look = {"color": color, "alpha": strength, "linewidth": width, "linestyle": dashes}
        shape = {"arrowstyle": "-" if link.cut else "-|>", "mutation_scale": 9.0 + 9.0 * share}
        ends: Any = {"connectionstyle": way, "shrinkA": 5.0, "shrinkB": 5.0, "zorder": 2}
        # `add_patch` would also look for the limits of the axes, which takes half of the time
        axes.add_artist(FancyArrowPatch(begin, end, **(look | shape | ends)))
        middle = (begin + end) / 2.0 + bend / 2.0 * (end - begin)[::-1] * [-1.0, 1.0]
        dots.append((middle, f"use-{level}", link.words))
    labels = []
    for i, (name, place) in enumerate(zip(drawn.nodes, drawn.places, strict=True)):
        charts.draw_dot(axes, place, 11.0, palette.ink, 4)
        charts.draw_dot(axes, place, 8.0, palette.ink if i in drawn.ends else palette.paper, 5)
        weight = "bold" if i in drawn.ends else "normal"
        text = charts.shortened(name)
        labels.append({"xy": place, "text": text, "color": palette.ink, "weight": weight})
        dots.append((place, "line-5", name))
    if len(drawn.nodes) <= NAMED:
        tails, heads = drawn.places[np.array([link[:2] for link in drawn.links]).T]
        lines = tails + np.linspace(0.0, 1.0, 60)[:, None, None] * (heads - tails)
        charts.write_labels(axes, labels, drawn.places, lines.reshape(-1, 2))
    return charts.dots_at(axes, dots)


def network_chart(drawn: DrawnNetwork, style: RunStyle) -> Chart:
    said, about = {0: "no load", LEVELS - 1: f"mean load {number(drawn.most)}"}, ""
    if drawn.limited:
        said = {0: "0 % used", LEVELS // 2: "50 %", LEVELS - 1: "100 %", LEVELS: "overfull"}
        fullest = max(drawn.links, key=lambda link: -1.0 if link.worst is None else link.worst)
        if fullest.worst is not None:
            about = f"at worst {fullest.name} was {_used(fullest.worst)} used, {fullest.when}"
    return Chart(
        f"network of {style.label}",
        f"The network under {style.label}",
        about,
        partial(draw_network, drawn=drawn),
        [RunStyle(text, hue, family="use") for hue, text in said.items()],
        _links_table(drawn, "Links", len(drawn.links)),
        drawn.size,
        (0.0, 0.0, 0.0, 0.0),
        wide=True,
    )


def _used(share: float) -> str:
    return percent(share) if np.isfinite(share) else "without any capacity"


def _links_table(drawn: DrawnNetwork, name: str, most: int) -> Table:
    links = [link for link in drawn.links if not link.cut]
    links.sort(key=lambda link: -((link.used or 0.0) if drawn.limited else abs(link.load)))
    rows = [
        (
            link.name,
            "no limit" if link.used is None else _used(link.used),
            "" if link.worst is None else _used(link.worst),
            link.when,
            number(link.load),
            "none" if link.capacity is None else number(link.capacity),
        )
        for link in links[:most]
    ]
    titles = ("link", "mean used", "worst", "when", "mean load", "mean capacity")
    shown = slice(None) if drawn.limited else slice(0, 5, 4)  # the link and its load
    return table(name, titles[shown], [row[shown] for row in rows])


def paths_table(each: ShownRun, net: Network | None, clock: Clock) -> Table | None:
    trajectory = each.run.trajectory
    assert trajectory is not None
    K: Any = each.run.learner.K
    routes = routes_of(K, net, trajectory.means[-1])
    if not routes:
        return None
    found = sorted(routes, key=lambda route: -route.share)
    shown = [route for route in found if route.share >= NEGLIGIBLE][:PATHS]
    rows = [[f"{route.share:.3g}", route.commodity, route.name] for route in shown]
    if left := found[len(shown) :]:
        rows.append(["...", "", f"{len(left):,} more, each with at most {percent(left[0].share)}"])
    step = 1 if len({route.commodity for route in found}) > 1 else 2  # one needs no name
    titles = ("share", "commodity", "path")[::step]
    span = clock.named_span(*trajectory.edges[-2:].tolist())
    return table(f"Paths in use, {span}", titles, [row[::step] for row in rows], kind="paths")


def networks_context(
    shown: Sequence[ShownRun], clock: Clock, problem: Problem | None = None
) -> dict[str, Any] | None:
    found = networks_of(shown, clock, problem)
    if not found:
        return None
    drawn, net = found[0][1], None if problem is None else problem.network
    said = {
        "Colour is utilisation, mean load over mean capacity; width is the mean load. The worst is "
        "the largest utilisation of any round.": drawn.limited,
        "Width and colour are the mean load; the links have no capacities.": not drawn.limited,
        f"Of many links the {LINKS} that carry most are drawn.": len(drawn.links) >= LINKS,
        "Dashed links are excluded.": any(link.cut for link in drawn.links),
    }
    name = "Fullest links" if drawn.limited else "Links that carry most"
    return {
        "about": " ".join(sentence for sentence, applies in said.items() if applies),
        "notes": [] if net is None else list(net.notes),
        "runs": [
            {
                "figure": charts.figure(network_chart(one, each.style)),
                "links": _links_table(one, name, FULLEST),
                "paths": paths_table(each, net, clock),
            }
            for each, one in found
        ],
    }
