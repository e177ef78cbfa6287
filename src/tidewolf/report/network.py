"""The network of flows with what every link carries, and how full it is.

    mean utilisation of a link   = its mean load / its mean capacity, over all rounds
    worst utilisation            = the largest of the same over the parts of the run that a
                                   trajectory keeps (evaluation/trajectory_summary.py)

A link is as wide as its mean load and as warm as its mean utilisation. Two links that lead from one
node to another and back share a line: each has the half at its tail. Distances on paper follow
distances in the graph (Kamada and Kawai 1989, by networkx), turned so that flow goes from left to
right, or from top to bottom; the same graph is always laid out the same. Names stand where
labels.py finds room; if it finds none, nodes are numbered, with a key beneath. Networks of more
than NAMED nodes show names at the pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidewolf.core.errors import MissingExtra
from tidewolf.core.types import Floats
from tidewolf.evaluation.formatting import number, percent
from tidewolf.report.clock import Clock, clock_of
from tidewolf.report.heat import ShownRun, shown_runs
from tidewolf.report.labels import Box, place, text_width
from tidewolf.report.styles import Table, table

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run
    from tidewolf.evaluation.trajectory_summary import TrajectorySummary
    from tidewolf.networks.network import Network

Place = tuple[float, float]
LINKS = 240
"""Of a larger network only those of its links are drawn that carry most."""
NAMED = 30
"""Of more nodes, names appear at the pointer alone."""
PATHS, FULLEST = 12, 8
"""How many paths, and how many of the fullest links, are listed."""
NEGLIGIBLE = 0.005
"""A load below this share of the largest counts as none, a path below this share has no line."""
LEVELS = 10
"""How many colours there are up to a full link; a fuller one has another."""
_WIDE, _NARROW = 860.0, 340.0  # of the drawings, across and down
_FONT, _LINE = 12.0, 15.0
_SIZES, _TRIES = (1.0, 1.2, 1.45, 1.8), 6
"""Names that find no room get it in a higher drawing, or among nodes that are placed otherwise."""
_LONGEST = 22  # letters of a name beside its node


class Carrier(NamedTuple):
    """A network behind a set, and what points put on its links."""

    nodes: tuple[str, ...]
    tails: tuple[int, ...]
    heads: tuple[int, ...]
    names: tuple[str, ...]
    """of links"""
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    loads: Callable[[Floats, slice], Floats]
    """the mean loads of links over rounds played at a point"""
    capacities: Callable[[slice], Floats | None]
    """the mean capacities of links over rounds, infinite where there is none; None where links
    have none at all
    """
    cut: Mapping[str, str] = MappingProxyType({})
    """links that may carry nothing, by name, and why"""


class LinkUse(NamedTuple):
    """A link and what it carried."""

    tail: int
    head: int
    name: str
    load: float
    capacity: float | None = None
    used: float | None = None
    """mean utilisation; None where the link has no capacity"""
    worst: float | None = None
    when: str = ""
    """the part of the run in which utilisation was worst"""
    cut: str = ""
    """why it may carry nothing, where it may not"""

    @property
    def words(self) -> str:
        """All of it in a line."""
        if self.cut:
            return f"{self.name}: not used, for it {self.cut}"
        if self.used is None or self.capacity is None:
            return f"{self.name}: mean load {number(self.load)}"
        worst = (
            "" if self.worst is None else f"; at worst {utilisation_text(self.worst)}, {self.when}"
        )
        return (
            f"{self.name}: mean load {number(self.load)} of {number(self.capacity)}, "
            f"{utilisation_text(self.used)} used{worst}"
        )


class DrawnNetwork(NamedTuple):
    """What is drawn of a network."""

    nodes: tuple[str, ...]
    ends: frozenset[int]
    """where flow begins and stops"""
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    links: tuple[LinkUse, ...]
    left_out: int
    """links that are not drawn, for they carry little or nothing"""

    @property
    def limited(self) -> bool:
        """Whether colours mean utilisation; without capacities they mean loads."""
        return any(link.used is not None for link in self.links)


class Drawing(NamedTuple):
    """A network as lines, arrows and texts, in pixels; what templates draw."""

    kind: str
    width: float
    height: float
    links: list[dict[str, Any]]
    nodes: list[dict[str, Any]]
    key: list[tuple[int, str]]
    """numbers and names of nodes, where there is no room for names beside them"""


def carrier_of(run: Run, net: Network | None = None) -> Carrier | None:
    """The network behind a run's set of flows; None for other sets."""
    from tidewolf.functions import Capacity, MaxUtilization
    from tidewolf.sets import CapacitatedFlow, FlowPolytope, MultiFlow

    K: Any = run.learner.hard_set
    limits = run.stream.constraints
    if net is not None:
        return _of_network(net, limits)
    graph = K
    if isinstance(K, FlowPolytope):
        sources, targets = [int(K.source)], [int(K.target)]
    elif isinstance(K, MultiFlow):
        sources, targets = (sorted(set(ends.tolist())) for ends in (K.sources, K.targets))
        if isinstance(limits, MaxUtilization):
            return _shared(K, limits, sources, targets)
    elif isinstance(K, CapacitatedFlow):
        graph = K.network
        sources = np.flatnonzero(graph.supply > 0).tolist()
        targets = np.flatnonzero(graph.supply < 0).tolist()
    else:
        return None

    def loads(x: Floats, rounds: slice) -> Floats:
        return np.asarray(K.loads(x)) if isinstance(K, MultiFlow) else x

    def capacities(rounds: slice) -> Floats | None:
        if not isinstance(limits, Capacity) or isinstance(K, MultiFlow):
            return None
        found: Floats = np.asarray(limits.c)[rounds].reshape(-1, len(graph.tails)).mean(axis=0)
        return found

    return _carrier(graph, sources, targets, loads, capacities)


def _of_network(net: Network, limits: Any) -> Carrier:
    """A network that was read or made as one."""
    from tidewolf.functions import Capacity, LoadLimit

    at = {node: i for i, node in enumerate(net.nodes)}
    sources, targets = (
        tuple(dict.fromkeys(at[node] for demand in net.demands for node in getattr(demand, ends)))
        for ends in ("sources", "targets")
    )
    moving = np.asarray(limits.demands) * net.unit if isinstance(limits, LoadLimit) else None
    known, link_of = None, np.arange(0)
    if isinstance(limits, LoadLimit):
        numbers = {name: i for i, name in enumerate(net.link_names)}
        known, link_of = limits.capacities, np.array([numbers[name] for name in limits.names])
    elif isinstance(limits, Capacity):
        known, link_of = limits.c, np.asarray(net.incidence.tocsc().indices)

    def loads(x: Floats, rounds: slice) -> Floats:
        return net.loads(x, None if moving is None else moving[rounds].mean(axis=0))

    def capacities(rounds: slice) -> Floats | None:
        if known is None:
            return None
        found = np.full(len(net.links), np.inf)
        found[link_of] = net.unit * np.asarray(known)[rounds].mean(axis=0)
        return found

    return Carrier(
        tuple(map(str, net.nodes)),
        tuple(at[tail] for tail, _ in net.links),
        tuple(at[head] for _, head in net.links),
        net.link_names,
        sources,
        targets,
        loads,
        capacities,
        {cut.link: cut.reason for cut in net.cut},
    )


def _shared(K: Any, limits: Any, sources: Sequence[int], targets: Sequence[int]) -> Carrier:
    """Commodities whose demands move, on links of fixed capacities."""
    demands, owner = np.asarray(limits.demands), np.asarray(limits.pairs)

    def loads(x: Floats, rounds: slice) -> Floats:
        found: Floats = K.incidence @ (demands[rounds].mean(axis=0)[owner] * x)
        return found

    capacities = np.asarray(limits.capacities, dtype=np.float64)
    return _carrier(K, sources, targets, loads, lambda rounds: capacities)


def _carrier(
    graph: Any,
    sources: Sequence[int],
    targets: Sequence[int],
    loads: Callable[[Floats, slice], Floats],
    capacities: Callable[[slice], Floats | None],
) -> Carrier:
    nodes = tuple(map(str, graph.nodes))
    tails, heads = tuple(map(int, graph.tails)), tuple(map(int, graph.heads))
    names = tuple(f"{nodes[tail]} > {nodes[head]}" for tail, head in zip(tails, heads, strict=True))
    return Carrier(nodes, tails, heads, names, tuple(sources), tuple(targets), loads, capacities)


def networks_of(
    shown: Sequence[ShownRun], clock: Clock, net: Network | None = None
) -> list[tuple[ShownRun, DrawnNetwork]]:
    """The network of each run, with the same links for all; nothing for sets without one."""
    carriers = [(each, carrier_of(each.run, net)) for each in shown]
    known = [
        (each, carrier, _links_of(carrier, each.trajectory, clock))
        for each, carrier in carriers
        if carrier is not None
    ]
    if not known:
        return []
    loads = np.max([[abs(link.load) for link in links] for _, _, links in known], axis=0)
    drawn = np.sort(np.argsort(-loads, kind="stable")[:LINKS]).tolist()
    if len(loads) > LINKS:
        drawn = [e for e in drawn if loads[e] >= NEGLIGIBLE * loads.max()]
    return [
        (each, _drawn(carrier, [links[e] for e in drawn], len(links) - len(drawn)))
        for each, carrier, links in known
    ]


def _drawn(carrier: Carrier, links: Sequence[LinkUse], left_out: int) -> DrawnNetwork:
    """The links with the nodes they join, which are numbered anew."""
    nodes = list(dict.fromkeys(node for link in links for node in (link.tail, link.head)))
    at = {node: i for i, node in enumerate(nodes)}
    sources, targets = (
        tuple(at[node] for node in ends if node in at)
        for ends in (carrier.sources, carrier.targets)
    )
    return DrawnNetwork(
        tuple(carrier.nodes[node] for node in nodes),
        frozenset((*sources, *targets)),
        sources,
        targets,
        tuple(link._replace(tail=at[link.tail], head=at[link.head]) for link in links),
        left_out,
    )


def _links_of(carrier: Carrier, kept: TrajectorySummary, clock: Clock) -> list[LinkUse]:
    """What each link carried, from the mean points of the run's parts."""
    parts = [slice(int(b), int(e)) for b, e in zip(kept.begins, kept.ends, strict=True)]
    lengths = (kept.ends - kept.begins).astype(np.float64)
    loads = np.array(
        [carrier.loads(point, part) for point, part in zip(kept.means, parts, strict=True)]
    )
    limits = np.full(loads.shape, np.inf)
    if carrier.capacities(slice(0, 1)) is not None:
        limits = np.array([carrier.capacities(part) for part in parts])
    with np.errstate(divide="ignore", invalid="ignore"):
        used = np.where(limits > 0.0, loads / limits, np.where(loads > 1e-12, np.inf, 0.0))
    found = []
    for e, name in enumerate(carrier.names):
        load, capacity = (float(np.average(x[:, e], weights=lengths)) for x in (loads, limits))
        link = LinkUse(carrier.tails[e], carrier.heads[e], name, load)
        if name in carrier.cut:
            link = link._replace(load=0.0, cut=carrier.cut[name])
        elif np.isfinite(capacity):
            share = load / capacity if capacity > 0.0 else np.inf if load > 1e-12 else 0.0
            at = parts[int(used[:, e].argmax())]
            link = link._replace(
                capacity=capacity,
                used=share,
                worst=float(used[:, e].max()),
                when=clock.named_span(at.start, at.stop),
            )
        found.append(link)
    return found


# --- drawing --------------------------------------------------------------------------------------


def drawings(network: DrawnNetwork, most: float) -> list[Drawing]:
    """The network from left to right, and from top to bottom for narrow pages; `most` is the load
    of the widest line.
    """
    return [_drawing(network, most, down=down) for down in (False, True)]


class Plan(NamedTuple):
    """Places of nodes in a picture of this size, and boxes of their names where these have room."""

    width: float
    height: float
    places: tuple[Place, ...]
    boxes: list[Box] | None


def plan(network: DrawnNetwork, *, down: bool) -> Plan:
    """Where everything is: in a picture that grows until every name has room, or, where even the
    largest has none, without names.
    """
    count = len(network.nodes)
    pairs = tuple(
        sorted({(min(link.tail, link.head), max(link.tail, link.head)) for link in network.links})
    )
    width, height = _room(count, down)
    sizes = [(text_width(shown_name(name), _FONT), _LINE) for name in network.nodes]
    aside = min(max(wide for wide, _ in sizes) + 16.0, 62.0 if down else 100.0)
    margins, flows = (aside, _LINE + 14.0), (network.sources, network.targets)

    def grown(size: float, seed: int) -> tuple[Place, ...]:
        box = (width - 2 * margins[0], height)
        found = node_places(count, pairs, *flows, box, down, seed)
        return tuple((x + margins[0], size * y + margins[1]) for x, y in found)

    if count <= NAMED:
        for size, seed in product(_SIZES, range(1 if down else _TRIES)):
            places, high = grown(size, seed), size * height + 2 * margins[1]
            lines = np.array([[*places[one], *places[two]] for one, two in pairs]).reshape(-1, 4)
            found = place(places, sizes, lines, Box(1.0, 1.0, width - 1.0, high - 1.0))
            if found.free:
                return Plan(width, high, places, found.boxes)
    return Plan(width, height + 2 * margins[1], grown(1.0, 0), None)


def _room(count: int, down: bool) -> tuple[float, float]:
    """How wide a drawing is, and how high it is at first, for so many nodes."""
    if down:
        return _NARROW, min(max(220.0, 34.0 * count), 900.0)
    return _WIDE, min(max(120.0, 40.0 + 22.0 * count), 560.0)


def _drawing(network: DrawnNetwork, most: float, *, down: bool) -> Drawing:
    made, most = plan(network, down=down), most or 1.0
    both = {(link.tail, link.head) for link in network.links}
    seen: dict[tuple[int, int], int] = {}
    links = []
    for link in sorted(network.links, key=lambda each: abs(each.load)):
        pair = (link.tail, link.head)
        beside = seen[pair] = seen.get(pair, -1) + 1
        halved = (link.head, link.tail) in both
        links.append(_line(link, made.places, halved, beside, most, network.limited))
    numbered = made.boxes is None and len(network.nodes) <= NAMED
    nodes = [
        _node(network, i, made.places[i], made.boxes[i] if made.boxes else None, numbered)
        for i in range(len(network.nodes))
    ]
    key = [(i + 1, name) for i, name in enumerate(network.nodes)] if numbered else []
    return Drawing("down" if down else "across", made.width, made.height, links, nodes, key)


def _line(
    link: LinkUse, places: Sequence[Place], halved: bool, beside: int, most: float, limited: bool
) -> dict[str, Any]:
    begin, end = np.array(places[link.tail]), np.array(places[link.head])
    step = end - begin
    length = max(float(np.hypot(*step)), 1e-9)
    along, across = step / length, np.array([-step[1], step[0]]) / length
    stop = begin + step * 0.5 if halved else end
    share = abs(link.load) / most
    width = 1.6 if share < NEGLIGIBLE else 2.0 + 4.5 * share
    moved = across * 7.0 * beside
    tip = (begin + step * 0.5 - 1.0 * along if halved else begin + step * 0.58) + moved
    wing = 2.0 + width
    back = tip - (wing + 3.0) * along
    corners = (tip, back + across * wing * 0.8, back - across * wing * 0.8)
    first, last = begin + moved, (back if halved else stop + moved)
    return {
        "words": link.words,
        "level": level(link.used) if limited else round(LEVELS * share * 0.9),
        "idle": share < NEGLIGIBLE,
        "cut": bool(link.cut),
        "width": round(width, 1),
        "line": np.round((*first, *last), 1).tolist(),
        "hit": np.round((*first, *(stop + moved)), 1).tolist(),
        "arrow": np.round(corners, 1).tolist(),
    }


def _node(
    network: DrawnNetwork, i: int, at: Place, box: Box | None, numbered: bool
) -> dict[str, Any]:
    name = network.nodes[i]
    return {
        "name": name,
        "x": round(at[0], 1),
        "y": round(at[1], 1),
        "end": i in network.ends,
        "radius": 9.5 if numbered else 5.0,
        "number": i + 1 if numbered else None,
        "label": None
        if box is None
        else {
            "x": round((box.left + box.right) / 2, 1),
            "y": round((box.top + box.bottom) / 2 + 0.36 * _FONT, 1),
            "text": shown_name(name),
        },
    }


def level(used: float | None) -> int | None:
    """The colour of a utilisation, from 0 to LEVELS - 1, LEVELS where a link is overfull; None
    where there is no capacity.
    """
    if used is None:
        return None
    return LEVELS if used > 1.0 + 1e-9 else min(LEVELS - 1, int(LEVELS * max(0.0, used)))


def shown_name(name: str) -> str:
    """A name, shortened where it is very long."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}\u2026"


def utilisation_text(share: float) -> str:
    """A utilisation: 0.4 %, 39 %, 104 %."""
    if not np.isfinite(share):
        return "without any capacity"
    return f"{100.0 * share:.0f} %" if share >= 0.1 else percent(share)


def summary(network: DrawnNetwork) -> str:
    """Mean and worst utilisation of all links, in words; empty without capacities."""
    known = [(link.used, link.worst or 0.0) for link in network.links if link.used is not None]
    known = [pair for pair in known if np.isfinite(pair[0])]
    if not known:
        return ""
    means, worst = zip(*known, strict=True)
    return (
        f"Links are {utilisation_text(sum(means) / len(means))} used on average, the fullest "
        f"{utilisation_text(max(means))}; at worst one was {utilisation_text(max(worst))} used."
    )


def _scale(limited: bool, most: float) -> dict[str, Any]:
    """The colour bar."""
    labels = ["0 %", "50 %", "100 % used"] if limited else ["0", f"{number(most)} mean load"]
    return {
        "levels": LEVELS,
        "labels": labels,
        "over": "overfull" if limited else "",
        "description": f"The colours of links, from {labels[0]} to {labels[-1]}",
    }


# --- places of nodes, and paths -------------------------------------------------------------------


@lru_cache(maxsize=64)
def node_places(
    nodes: int,
    pairs: tuple[tuple[int, int], ...],
    sources: tuple[int, ...],
    targets: tuple[int, ...],
    box: tuple[float, float],
    down: bool = False,
    seed: int = 0,
) -> tuple[tuple[float, float], ...]:
    """A place in a box of this width and height for each node; another one for another seed."""
    try:
        import networkx as nx
    except ImportError:
        raise MissingExtra(
            'Pictures of networks need networkx: pip install "tidewolf[app]".'
        ) from None
    graph = nx.Graph(pairs)
    graph.add_nodes_from(range(nodes))
    # parts of the graph that no link joins are a little farther apart than the ends of a part
    links = dict(nx.all_pairs_shortest_path_length(graph))
    most = 1 + max(max(row.values()) for row in links.values())
    distances = {i: dict.fromkeys(range(nodes), most) | row for i, row in links.items()}
    start = nx.random_layout(graph, seed=seed) if seed else None
    found = nx.kamada_kawai_layout(graph, dist=distances, pos=start)
    places = _turned(np.array([found[i] for i in range(nodes)]), sources, targets)
    if down:
        places = places[:, ::-1]
    low, span = places.min(axis=0), np.ptp(places, axis=0)
    shares = np.where(span > 1e-6, (places - low) / np.where(span > 1e-6, span, 1.0), 0.5)
    return tuple((float(x), float(y)) for x, y in shares * np.array(box))


def _turned(places: Floats, sources: tuple[int, ...], targets: tuple[int, ...]) -> Floats:
    places = places - places.mean(axis=0)
    ways = (
        places[list(targets)].mean(axis=0) - places[list(sources)].mean(axis=0)
        if sources and targets
        else np.zeros(2)
    )
    if np.hypot(*ways) < 0.1:  # many ways at once: the longest axis lies across
        ways = np.linalg.eigh(places.T @ places)[1][:, -1]
        ways = ways * (np.sign(ways[np.abs(ways).argmax()]) or 1.0)
    cosine, sine = ways / max(float(np.hypot(*ways)), 1e-12)
    found: Floats = places @ np.array([[cosine, -sine], [sine, cosine]])
    return found


def paths_context(
    run: Run, trajectory: TrajectorySummary, net: Network | None, clock: Clock
) -> dict[str, Any] | None:
    """The heaviest paths of the last part of a run; None for sets without paths."""
    found = paths_in_use(run, trajectory.means[-1], net)
    if not found:
        return None
    begin, end = int(trajectory.begins[-1]), int(trajectory.ends[-1])
    shown = [one for one in found if one[2] >= NEGLIGIBLE][:PATHS]
    left = found[len(shown) :]
    several = len({commodity for commodity, _, _ in found}) > 1
    return {
        "title": f"Paths in use, {clock.named_span(begin, end)}",
        "listed": [
            {
                "share": min(1.0, share),
                "share_text": f"{share:.3g}",
                "nodes": nodes,
                "commodity": commodity if several else "",
            }
            for commodity, nodes, share in shown
        ],
        "more": _more(left, several),
    }


def _more(left: Sequence[tuple[str, tuple[str, ...], float]], several: bool) -> str:
    """How many paths are not listed, and what they carry."""
    if not left:
        return ""
    counted = f"and {len(left):,} more path{'s' * (len(left) > 1)}"
    if several:  # shares of several demands do not add up
        return f"{counted}, each with at most {percent(left[0][2])} of its demand"
    return f"{counted} with {percent(sum(share for _, _, share in left))} of the demand"


def paths_in_use(
    run: Run, x: Floats, net: Network | None = None
) -> list[tuple[str, tuple[str, ...], float]]:
    """Commodity, nodes and share of each path, heaviest first."""
    from tidewolf.sets import FlowPolytope, MultiFlow

    K: Any = run.learner.hard_set
    each: Iterable[tuple[Any, Any, Any]]
    if net is not None:
        each = ((path.commodity, path.nodes, path.share) for path in net.path_shares(x))
    elif isinstance(K, FlowPolytope):
        each = (("", path.nodes, path.weight) for path in K.paths(x))
    elif isinstance(K, MultiFlow):
        each = (
            (f"{paths[0].nodes[0]} > {paths[0].nodes[-1]}", path.nodes, path.weight / demand)
            for paths, demand in zip(K.paths(x), K.demands, strict=True)
            for path in paths
            if demand > 0.0
        )
    else:
        return []
    found = [
        (str(commodity), tuple(map(str, nodes)), float(share)) for commodity, nodes, share in each
    ]
    return sorted(found, key=lambda one: -one[2])


# --- the section of the page ----------------------------------------------------------------------


def networks_context(
    runs: Sequence[Run], entries: Sequence[str] = (), net: Network | None = None
) -> dict[str, Any] | None:
    """The network under every run; None where there is none, or no points were kept."""
    clock = clock_of(runs[0].stream, runs[0].rounds)
    found = networks_of(shown_runs(runs, entries), clock, net)
    if not found:
        return None
    shown, drawn = [each for each, _ in found], [net_drawn for _, net_drawn in found]
    limited = any(each.limited for each in drawn)
    most = max((abs(link.load) for each in drawn for link in each.links), default=0.0)
    return {
        "about": _about(drawn[0], limited, shown[0]),
        "notes": [] if net is None else list(net.notes),
        "scale": _scale(limited, most),
        "runs": [
            {
                "style": each.style,
                "summary": summary(net_drawn),
                "description": f"The network with the load of each link under {each.style.label}.",
                "drawings": drawings(net_drawn, most),
                "links": _links(net_drawn, limited),
                "paths": paths_context(each.run, each.trajectory, net, clock),
            }
            for each, net_drawn in found
        ],
    }


def _about(drawn: DrawnNetwork, limited: bool, each: ShownRun) -> str:
    """How to read the drawing, in the sentences that apply."""
    parts, pairs = len(each.trajectory.ends), {(link.tail, link.head) for link in drawn.links}
    part = int(np.median(each.trajectory.ends - each.trajectory.begins))
    single, named = part <= 1, len(drawn.nodes) <= NAMED
    said = {
        "Colour is utilisation: the mean load of a link over its mean capacity.": limited,
        "Width is the mean load.": limited,
        "Width and colour are the mean load; the links have no capacities.": not limited,
        "Worst utilisation is that of single rounds.": limited and single,
        f"Worst utilisation is that of {parts} parts of the run, of about {part:,} rounds each.": (
            limited and not single
        ),
        f"{drawn.left_out:,} links that carry less are not drawn.": drawn.left_out > 0,
        "Dashed links may carry nothing.": any(link.cut for link in drawn.links),
        "Of links both ways each direction is drawn as its half of the line, up to its arrow.": any(
            (head, tail) in pairs for tail, head in pairs
        ),
        "Links say more at the pointer.": named,
        "Names of nodes and links appear at the pointer.": not named,
    }
    return " ".join(sentence for sentence, applies in said.items() if applies)


def _links(drawn: DrawnNetwork, limited: bool) -> Table:
    """The fullest links, or those that carry most."""
    if not limited:
        ranked = sorted(drawn.links, key=lambda link: -abs(link.load))[:FULLEST]
        rows = [(link.name, number(link.load)) for link in ranked]
        return table("Links that carry most", ("link", "mean load"), rows)
    links = [link for link in drawn.links if not link.cut]
    full = [
        (
            link.name,
            "no limit" if link.used is None else utilisation_text(link.used),
            "" if link.worst is None else utilisation_text(link.worst),
            link.when,
            number(link.load),
            "none" if link.capacity is None else number(link.capacity),
        )
        for link in sorted(links, key=lambda link: -(link.used or 0.0))[:FULLEST]
    ]
    titles = ("link", "mean used", "worst", "when", "mean load", "mean capacity")
    return table("Fullest links", titles, full)
