"""The network of flows with what every link carries, and how full it is.

    mean utilisation of a link   = its mean load / its mean capacity, over all rounds
    worst utilisation            = the largest of the same over the parts of the run that a
                                   trajectory keeps (evaluation/trajectory_summary.py)

A link is as wide as its mean load and as warm as its mean utilisation. Two links that lead from one
node to another and back share a line: each has the half at its tail. Positions are layout.py's,
the same for every run of a page; names stand where labels.py finds room, and where it finds none
nodes are numbered, with a key beneath. Networks of more than NAMED nodes say names at a pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidewolf.core.types import Floats
from tidewolf.evaluation.formatting import number, percent
from tidewolf.report.clock import Clock
from tidewolf.report.labels import Box, place, text_width
from tidewolf.report.layout import node_places

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run
    from tidewolf.networks.network import Network

Place = tuple[float, float]
LINKS = 240
"""Of a larger network only those of its links are drawn that carry most."""
NAMED = 30
"""Of more nodes, names are said at a pointer alone."""
NEGLIGIBLE = 0.005
"""A load below this share of the largest counts as none."""
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


class Usage(NamedTuple):
    """Loads and capacities of every link of a network under one run."""

    loads: Floats
    capacities: Floats | None
    worst: Floats | None
    worst_part: Any
    """the part in which each link was fullest"""


def usage(carrier: Carrier, run: Run) -> Usage:
    """What the links carried, from the mean points of the run's parts."""
    kept = run.trajectory
    assert kept is not None
    parts = [slice(int(b), int(e)) for b, e in zip(kept.begins, kept.ends, strict=True)]
    lengths = (kept.ends - kept.begins).astype(np.float64)
    loads = np.array(
        [carrier.loads(point, part) for point, part in zip(kept.means, parts, strict=True)]
    )
    mean = np.average(loads, axis=0, weights=lengths)
    if carrier.capacities(slice(0, 1)) is None:
        return Usage(mean, None, None, None)
    limits = np.array([carrier.capacities(part) for part in parts])
    with np.errstate(divide="ignore", invalid="ignore"):
        used = np.where(limits > 0.0, loads / limits, np.where(loads > 1e-12, np.inf, 0.0))
    return Usage(
        mean, np.average(limits, axis=0, weights=lengths), used.max(axis=0), used.argmax(axis=0)
    )


def drawn_links(carrier: Carrier, used: Sequence[Usage]) -> list[int]:
    """Which links are drawn: all, or of many those that carry most under any of the runs."""
    loads = np.max([np.abs(each.loads) for each in used], axis=0)
    if len(loads) <= LINKS:
        return list(range(len(loads)))
    most = np.sort(np.argsort(-loads, kind="stable")[:LINKS])
    return [int(e) for e in most if loads[e] >= NEGLIGIBLE * loads.max()]


def drawn_network(
    carrier: Carrier, used: Usage, shown: Sequence[int], clock: Clock, run: Run
) -> DrawnNetwork:
    """The links that are shown, with the nodes they join."""
    pairs = [(carrier.tails[e], carrier.heads[e]) for e in shown]
    nodes = list(dict.fromkeys(node for pair in pairs for node in pair))
    at = {node: i for i, node in enumerate(nodes)}
    sources, targets = (
        tuple(at[node] for node in ends if node in at)
        for ends in (carrier.sources, carrier.targets)
    )
    links = tuple(
        _link_use(carrier, used, e, at[tail], at[head], clock, run)
        for e, (tail, head) in zip(shown, pairs, strict=True)
    )
    return DrawnNetwork(
        tuple(carrier.nodes[node] for node in nodes),
        frozenset((*sources, *targets)),
        sources,
        targets,
        links,
        len(carrier.tails) - len(shown),
    )


def _link_use(
    carrier: Carrier, used: Usage, e: int, tail: int, head: int, clock: Clock, run: Run
) -> LinkUse:
    name, load = carrier.names[e], float(used.loads[e])
    if name in carrier.cut:
        return LinkUse(tail, head, name, 0.0, cut=carrier.cut[name])
    if used.capacities is None or used.worst is None or not np.isfinite(used.capacities[e]):
        return LinkUse(tail, head, name, load)
    capacity, part, kept = float(used.capacities[e]), int(used.worst_part[e]), run.trajectory
    assert kept is not None
    share = load / capacity if capacity > 0.0 else np.inf if load > 1e-12 else 0.0
    when = clock.named_span(int(kept.begins[part]), int(kept.ends[part]))
    return LinkUse(tail, head, name, load, capacity, share, float(used.worst[e]), when)


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
        "width": f"{width:.1f}",
        "line": "{:.1f} {:.1f} {:.1f} {:.1f}".format(*first, *last).split(),
        "hit": "{:.1f} {:.1f} {:.1f} {:.1f}".format(*first, *(stop + moved)).split(),
        "arrow": " ".join(f"{x:.1f},{y:.1f}" for x, y in corners),
    }


def _node(
    network: DrawnNetwork, i: int, at: Place, box: Box | None, numbered: bool
) -> dict[str, Any]:
    name = network.nodes[i]
    return {
        "name": name,
        "x": f"{at[0]:.1f}",
        "y": f"{at[1]:.1f}",
        "end": i in network.ends,
        "radius": 9.5 if numbered else 5.0,
        "number": i + 1 if numbered else None,
        "label": None
        if box is None
        else {
            "x": f"{(box.left + box.right) / 2:.1f}",
            "y": f"{(box.top + box.bottom) / 2 + 0.36 * _FONT:.1f}",
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
    """Mean and worst utilisation of all links in a sentence; empty without capacities."""
    known = [(link.used, link.worst or 0.0) for link in network.links if link.used is not None]
    known = [pair for pair in known if np.isfinite(pair[0])]
    if not known:
        return ""
    means, worst = zip(*known, strict=True)
    return (
        f"Links are {utilisation_text(sum(means) / len(means))} used on average, the fullest "
        f"{utilisation_text(max(means))}; at worst one was {utilisation_text(max(worst))} used."
    )


def scale_context(limited: bool, most: float) -> dict[str, Any]:
    """The colour bar."""
    labels = ["0 %", "50 %", "100 % used"] if limited else ["0", f"{number(most)} mean load"]
    return {
        "levels": LEVELS,
        "labels": labels,
        "over": "overfull" if limited else "",
        "description": f"The colours of links, from {labels[0]} to {labels[-1]}",
    }
