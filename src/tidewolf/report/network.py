"""Networks of flows, drawn in layers from the source on, with what every link carries.

Layer of a node: the longest way to it from the source where the graph has no cycle, else the fewest
links from one. A link over several layers passes a place of its own in each between. Within layers,
places are in the order of their neighbours' means (eight sweeps forth and back), then moved to
these means as far as a least distance allows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidewolf.core.types import Floats

if TYPE_CHECKING:
    from tidewolf.core.oracle import HasLMO
    from tidewolf.sets.flows.flow_polytope import Path

Place = tuple[float, float]
LINKS = 80
"""Of a larger network only those of its links are drawn that carry most."""
NEGLIGIBLE = 0.005
"""A load below this share of the largest counts as none."""
_CROWD = 30  # more links than that leave no room for every number
_SWEEPS = 8
_DOWN_WIDTH = 360  # about a phone's


class DrawnNetwork(NamedTuple):
    """A directed graph and what its links carry."""

    nodes: tuple[str, ...]
    tails: tuple[int, ...]
    heads: tuple[int, ...]
    ends: frozenset[int]
    """where flow begins and stops"""
    layers: tuple[int, ...]
    loads: tuple[float, ...]


class Layout(NamedTuple):
    """Layer and place within it, of nodes and along links."""

    nodes: dict[int, Place]
    routes: tuple[tuple[Place, ...], ...]
    """of each link, from its tail to its head"""


def network_of(K: HasLMO, x: Floats) -> DrawnNetwork | None:
    """The network behind a set of flows with the loads of a point; None for other sets."""
    from tidewolf.sets import CapacitatedFlow, FlowPolytope, MultiFlow

    graph: Any = K
    if isinstance(K, FlowPolytope):
        loads = x
        sources, ends = [K.source], {K.source, K.target}
    elif isinstance(K, MultiFlow):
        loads = np.asarray(K.loads(x))
        sources, ends = sorted(set(K.sources.tolist())), {*K.sources.tolist(), *K.targets.tolist()}
    elif isinstance(K, CapacitatedFlow):
        graph, loads = K.network, x
        sources = np.flatnonzero(graph.supply > 0).tolist()
        ends = set(np.flatnonzero(graph.supply).tolist())
    else:
        return None
    names, tails, heads = graph.nodes, graph.tails, graph.heads
    most = np.sort(np.argsort(-np.abs(loads), kind="stable")[:LINKS])
    if len(tails) > LINKS:
        most = most[np.abs(loads[most]) >= NEGLIGIBLE * np.abs(loads).max()]
    pairs = [(int(tails[e]), int(heads[e])) for e in most]
    used = list(
        dict.fromkeys(
            [
                *(s for s in sources if any(s in pair for pair in pairs)),
                *(node for pair in pairs for node in pair),
            ]
        )
    )
    number = {node: i for i, node in enumerate(used)}
    tail_numbers, head_numbers = (tuple(number[pair[side]] for pair in pairs) for side in (0, 1))
    return DrawnNetwork(
        nodes=tuple(str(names[node]) for node in used),
        tails=tail_numbers,
        heads=head_numbers,
        ends=frozenset(number[end] for end in ends if end in number),
        layers=_layers(
            len(used), tail_numbers, head_numbers, [number[s] for s in sources if s in number]
        ),
        loads=tuple(float(loads[e]) for e in most),
    )


def paths_in_use(K: HasLMO, x: Floats) -> list[Path]:
    """The paths of a flow that carry something worth saying, heaviest first; none for sets without
    paths.
    """
    from tidewolf.sets import FlowPolytope, MultiFlow

    if isinstance(K, FlowPolytope):
        return K.paths(x, tolerance=NEGLIGIBLE)
    if isinstance(K, MultiFlow):
        return sorted(
            (path for paths in K.paths(x, tolerance=NEGLIGIBLE) for path in paths),
            key=lambda path: -path.weight,
        )
    return []


def _layers(
    nodes: int, tails: Sequence[int], heads: Sequence[int], sources: Sequence[int]
) -> tuple[int, ...]:
    """Longest ways, found as a fixed point within `nodes` sweeps; fewest links where a cycle keeps
    that from settling.
    """
    longest = [0] * nodes
    for _ in range(nodes):
        before = list(longest)
        for tail, head in zip(tails, heads, strict=True):
            longest[head] = max(longest[head], longest[tail] + 1)
        if before == longest:
            return tuple(longest)
    reached = {sources[0] if sources else 0: 0}
    for node in (waiting := list(reached)):
        for tail, head in zip(tails, heads, strict=True):
            if tail == node and head not in reached:
                reached[head] = reached[node] + 1
                waiting.append(head)
    return tuple(reached.get(node, 0) for node in range(nodes))


def layout(network: DrawnNetwork) -> Layout:
    """Where everything is."""
    layers: dict[int, list[Any]] = defaultdict(list)
    for node, layer in enumerate(network.layers):
        layers[layer].append(node)
    chains = []
    for link, (tail, head) in enumerate(zip(network.tails, network.heads, strict=True)):
        start, stop = network.layers[tail], network.layers[head]
        step = 1 if stop >= start else -1
        between = [(link, layer) for layer in range(start + step, stop, step)]
        for item in between:
            layers[item[1]].append(item)
        chains.append([tail, *between, head])
    near: dict[Any, list[Any]] = defaultdict(list)
    for chain in chains:
        for one, other in pairwise(chain):
            near[one].append(other)
            near[other].append(one)
    place: dict[Any, float] = {
        item: i - (len(items) - 1) / 2 for items in layers.values() for i, item in enumerate(items)
    }
    for sweep in range(_SWEEPS):
        for layer in sorted(layers, reverse=sweep % 2 == 1):
            wanted = {
                item: _mean([place[other] for other in near[item]], place[item])
                for item in layers[layer]
            }
            layers[layer].sort(key=wanted.__getitem__)
            place.update(_apart(layers[layer], wanted))
    at = {item: (float(layer), place[item]) for layer, items in layers.items() for item in items}
    return Layout(
        {node: at[node] for node in range(len(network.nodes))},
        tuple(tuple(at[item] for item in chain) for chain in chains),
    )


def _apart(items: Sequence[Any], wanted: dict[Any, float]) -> dict[Any, float]:
    """Places in this order, near the wanted ones, nodes at least 1 apart and links 1/2."""
    placed: list[float] = []
    for before, item in zip([None, *items], items, strict=False):
        least = 1.0 if isinstance(item, int) and isinstance(before, int) else 0.6
        placed.append(wanted[item] if not placed else max(wanted[item], placed[-1] + least))
    shift = sum(wanted[item] - p for item, p in zip(items, placed, strict=True)) / len(items)
    return {item: p + shift for item, p in zip(items, placed, strict=True)}


def _mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def bends(network: DrawnNetwork) -> list[int]:
    """How many links between the same two nodes came before each: they are drawn beside each
    other.
    """
    seen: dict[frozenset[int], int] = defaultdict(int)
    found = []
    for ends in map(frozenset, zip(network.tails, network.heads, strict=True)):
        found.append(seen[ends])
        seen[ends] += 1
    return found


def drawings(network: DrawnNetwork, color: int, alt_text: str) -> str:
    """The network from left to right, and from top to bottom for narrow pages."""
    return _svg(network, color, alt_text, down=False) + _svg(network, color, alt_text, down=True)


def _svg(network: DrawnNetwork, color: int, alt_text: str, *, down: bool) -> str:
    plan = layout(network)
    places = [place for route in plan.routes for place in route]
    low, high = (end(place[1] for place in places) for end in (min, max))
    depth, span = max(network.layers), max(high - low, 1e-9)
    step, gap = (
        (84.0, min(84.0, (_DOWN_WIDTH - 96.0) / span))
        if down
        else (min(190.0, 960.0 / max(1, depth)), min(74.0, 560.0 / span))
    )
    aside, above = (48.0, 26.0) if down else (60.0, 30.0)
    lead, side = (above, aside) if down else (aside, above)
    used = gap * (high - low)
    if down:
        side = max(aside, (_DOWN_WIDTH - used) / 2)

    def at(place: Place) -> tuple[float, float]:
        along, across = lead + step * place[0], side + gap * (place[1] - low)
        return (across, along) if down else (along, across)

    width, height = (
        (max(_DOWN_WIDTH, used + 2 * side), step * depth + 2 * lead)
        if down
        else (step * depth + 2 * lead, used + 2 * side)
    )
    most = max(map(abs, network.loads), default=0.0) or 1.0
    order = sorted(range(len(network.loads)), key=lambda e: abs(network.loads[e]))
    bent = bends(network)
    lines = [
        _link(network, e, [at(place) for place in plan.routes[e]], bent[e], most, down)
        for e in order
    ]
    words = [
        _load(
            network.loads[e],
            [at(place) for place in plan.routes[e]],
            bent[e],
            least_written_load(network),
            down,
        )
        for e in order
    ]
    nodes = [_node(network, node, *at(place), down) for node, place in plan.nodes.items()]
    return (
        f'<svg class="network {"down" if down else "across"}" viewBox="0 0 {width:.0f} '
        f'{height:.0f}" role="img" aria-label="{escape(alt_text)}" style="--tone: '
        f'var(--line-{color}); --wide: {width:.0f}px">{"".join(lines + words + nodes)}</svg>'
    )


def _link(
    network: DrawnNetwork, e: int, points: Sequence[Place], bend: int, most: float, down: bool
) -> str:
    load = network.loads[e]
    share = abs(load) / most
    said = f"{network.nodes[network.tails[e]]} to {network.nodes[network.heads[e]]}: {load:.3g}"
    drawn = (
        f'class="used" stroke-width="{1.0 + 8.0 * share:.1f}"'
        if share >= NEGLIGIBLE
        else 'stroke-width="1"'
    )
    return f'<g><title>{escape(said)}</title><path {drawn} d="{curve(points, bend, down)}"/></g>'


def least_written_load(network: DrawnNetwork) -> float:
    """The least load that is written at its link: all that count where there is room, else the
    large ones.
    """
    return max(map(abs, network.loads)) * (NEGLIGIBLE if len(network.loads) <= _CROWD else 0.2)


def curve(points: Sequence[Place], bend: int, down: bool) -> str:
    """A smooth line through points that leaves and enters them along the layers' direction; bent
    aside beside others.
    """
    words = [f"M{points[0][0]:.0f} {points[0][1]:.0f}"]
    for one, two in segments(points, bend, down):
        words.append("C" + " ".join(f"{x:.0f} {y:.0f}" for x, y in (*one, two)))
    return "".join(words)


def segments(
    points: Sequence[Place], bend: int, down: bool
) -> list[tuple[tuple[Place, Place], Place]]:
    """The control points and the end of each piece of a cubic spline: a third of a slope beyond and
    before its ends.

    Slopes are along the layers at both ends of a link, and half the way from neighbour to neighbour
    between.
    """
    aside = 22.0 * ((bend + 1) // 2) * (1 if bend % 2 else -1)
    ahead = [two[down] - one[down] for one, two in pairwise(points)]
    slopes = [
        ((two[0] - one[0]) / 2, (two[1] - one[1]) / 2)
        for one, two in zip(points, points[2:], strict=False)
    ]
    first, last = (1.5 * step or turn for step, turn in ((ahead[0], 90.0), (ahead[-1], -90.0)))
    slopes = [(0.0, first) if down else (first, 0.0), *slopes, (0.0, last) if down else (last, 0.0)]
    moved = (aside, 0.0) if down else (0.0, aside)
    found = []
    for (one, two), (leaving, entering) in zip(pairwise(points), pairwise(slopes), strict=True):
        before: Place = (one[0] + leaving[0] / 3 + moved[0], one[1] + leaving[1] / 3 + moved[1])
        after: Place = (two[0] - entering[0] / 3 + moved[0], two[1] - entering[1] / 3 + moved[1])
        found.append(((before, after), two))
    return found


def middle(points: Sequence[Place], bend: int, down: bool) -> Place:
    """The middle of a link's middle piece, where its load is written."""
    k = (len(points) - 2) // 2
    begin, ((first, second), end) = points[k], segments(points, bend, down)[k]
    x, y = ((begin[i] + 3 * first[i] + 3 * second[i] + end[i]) / 8 for i in (0, 1))
    return x, y


def _load(load: float, points: Sequence[Place], bend: int, least: float, down: bool) -> str:
    if abs(load) < least:
        return ""
    x, y = middle(points, bend, down)
    return f'<text class="load" x="{x:.0f}" y="{y + 3.5:.1f}">{load:.2g}</text>'


def _node(network: DrawnNetwork, node: int, x: float, y: float, down: bool) -> str:
    name, end = network.nodes[node], ' class="end"' if node in network.ends else ""
    shown = name if len(name) <= 15 else f"{name[:14]}\u2026"
    title = f"<title>{escape(name)}</title>" if shown != name else ""
    dot = f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4.5"/>'
    return (
        f'<g{end}>{title}{dot}<text x="{x:.0f}" '
        f'y="{y + (-10 if down else 19):.0f}">{escape(shown)}</text></g>'
    )
