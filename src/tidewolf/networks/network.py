"""Networks of links and demands: the set of decisions, and the loads and costs of a decision.

A decision is, for each commodity j, a share of its demand on every link, or on every tunnel:

    load_tl(x)  =  sum_e incidence[l, e] demand_{t, owner(e)} x_e          volume on link l
    f_t(x)      =  sum_l cost_tl load_tl(x)                                what the round costs
    g_t(x)      =  max_l ( load_tl(x) - capacity_tl ) / unit               in shares of all demands
    u_t(x)      =  max_l load_tl(x) / capacity_tl                          how full the fullest is

over the links that have a capacity; unit is the sum of the commodities' demands. Either f_t is the
loss and g_t the constraint, or u_t is the loss. What may carry what is the caller's choice:

    away          links that lead away from a commodity's source: head farther than tail, or as far
                  and nearer to the target. No cycle is left, so no decision goes round in circles.
                  Other links are cut, and `cut` says which, and why. A graph without cycles keeps
                  every link.
    all           every link, as a flow of at most the whole demand on each; cycles are no trouble
    k-shortest    the k shortest paths of each commodity: tunnels, link-disjoint ones if asked for
    own paths     tunnels of the caller's

| commodities | away | all | k-shortest, own |
|---|---|---|---|
| one, from a source to a target | FlowPolytope | CapacitatedFlow | SimplexProduct |
| one, of several sources or targets | CapacitatedFlow (*) | CapacitatedFlow | - |
| many | MultiFlow | Product of CapacitatedFlow | SimplexProduct |

(*) over what leads away from one of the sources on a way to one of the targets

    away  = { (u, v) : (dist(s, v), -dist(v, t)) > (dist(s, u), -dist(u, t)) in the order of words }
        farther from the source, or as far and nearer to the target: no cycle is left
    shortest-path DAG = those of them that lie on a way from the source to the target

With lengths that tell all distances apart these are the links whose head is farther than their
tail (`sets.graph_tools.away`); if many are equal, as without lengths, more stay.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeAlias, cast, final

import numpy as np

from tidewolf.core import batch, errors, frames, settings
from tidewolf.core.arguments import all_different, as_items, as_text, listed, shown
from tidewolf.core.arrays import as_number, as_numbers, as_point, frozen, to_numpy
from tidewolf.core.errors import InvalidInput, WrongShape, WrongType, refuse, require
from tidewolf.core.lazy import sp
from tidewolf.core.types import Array, Floats, Int64s, Link, NDArray
from tidewolf.core.values import Value
from tidewolf.functions import Capacity, Linear, LoadLimit, MaxUtilization
from tidewolf.sets import CapacitatedFlow, ConvexSet, Product, graph_tools
from tidewolf.sets.flows import FlowPolytope, MultiFlow, Path
from tidewolf.sets.graphs import Commodities, Commodity, Node, node_number, numbers_of

if TYPE_CHECKING:
    from tidewolf.networks.tunnels import Tunnels

PATHS = ("away", "all", "k-shortest")
# Lists of limited links whose incidence is kept.
MOST_SHARED = 16


# --- links and paths ------------------------------------------------------------------------------


class Tunnel(NamedTuple):
    """A path between two nodes.

    Parameters
    ----------
    nodes : tuple of hashable
        The nodes it passes, from its source to its target.
    links : tuple of int
        The places of its links in the network, in order.
    length : float
        How long it is.
    name : str, default ""
        What it is called; empty: as its nodes are.

    Examples
    --------
    >>> tunnels = tw.networks.Tunnels([("s", "a"), ("a", "t"), ("s", "t")], [("s", "t")])
    >>> tunnels.paths[1]
    Tunnel(nodes=('s', 'a', 't'), links=(0, 1), length=2.0, name='')
    """

    nodes: tuple[Hashable, ...]
    links: tuple[int, ...]
    length: float
    name: str = ""


class LinkRow(NamedTuple):
    tail: Hashable
    head: Hashable
    length: float = 1.0
    capacity: float | None = None
    name: str = ""


class LinkRows(settings.Check):
    """Links with lengths and capacities, as tuples, of a networkx graph or of an edge list in a
    frame.
    """

    words: ClassVar[str] = (
        "the name of a graph's file, or a list of [tail, head, length, capacity], the last two "
        "optional"
    )

    def __call__(self, value: Any, what: str) -> tuple[LinkRow, ...]:
        graph, such = frames.edges_of(value, what), "[('SEA', 'DEN', 1640.0, 10.0)]"
        rows: Iterable[Any] = as_items(value, what, such) if graph is None else _of_graph(graph)
        link_rows = tuple(_as_link_row(i, row, what) for i, row in enumerate(rows))
        require(link_rows, InvalidInput, f"{what} has no links; give at least one (tail, head).")
        return link_rows

    def read(self, value: Any) -> str | tuple[Any, ...] | None:
        if isinstance(value, str):
            return value or None
        listed = isinstance(value, list) and all(isinstance(row, list) for row in value)
        return tuple(map(tuple, value)) if listed else None


GraphSetting: TypeAlias = Annotated[Iterable[tuple[Any, ...]], LinkRows()]


class PathRows(settings.Check):
    """Paths, each the nodes that it passes, or a `Tunnel`; by name, or as a list."""

    words: ClassVar[str] = "nothing that a file can say"

    def __call__(self, value: Any, what: str) -> tuple[Tunnel, ...]:
        by_name = isinstance(value, Mapping)
        such = '[["SEA", "DEN", "NYC"]] or {"north": ["SEA", "DEN", "NYC"]}'
        items = value.items() if by_name else (("", each) for each in as_items(value, what, such))
        found = list[Tunnel]()
        for name, path in items:
            if isinstance(path, Tunnel):
                found.append(path)
                continue
            nodes = tuple(as_items(path, f"A path of {what}", such))
            hashable = all(isinstance(node, Hashable) for node in nodes)
            if not hashable or len(nodes) < 2 or len(set(nodes)) < len(nodes):
                raise InvalidInput(f"A path of {what} is two nodes or more, not {shown(path)}.")
            found.append(Tunnel(nodes, (), 0.0, as_text(name, f"The name of a path of {what}")))
        for name, count in Counter(path.name for path in found if path.name).items():
            refuse(count > 1, f"{what}: {count} paths are called {name!r}; rename one.")
        return tuple(found)


class OnLinks(Value):
    graph: Any

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The links, (tail, head)."""
        return tuple((link_row.tail, link_row.head) for link_row in self._link_rows)

    @cached_property
    def nodes(self) -> tuple[Hashable, ...]:
        """The nodes, in the order in which links name them."""
        return tuple(dict.fromkeys(node for link in self.links for node in link))

    @cached_property
    def lengths(self) -> Floats:
        """The length of each link."""
        return frozen(np.array([link_row.length for link_row in self._link_rows]))

    @property
    def _link_rows(self) -> tuple[LinkRow, ...]:
        return cast(tuple[LinkRow, ...], self.graph)  # what its check makes of it


def _of_graph(graph: frames.Edges) -> list[LinkRow]:
    link_rows = []
    for edge in graph.edges:
        length, capacity = edge.get("length", "weight"), edge.get("capacity")
        name = "" if graph.columns is None else str(edge.get("name") or "")
        length = 1.0 if length is None else length
        link_rows.append(LinkRow(edge.tail, edge.head, length, capacity, name))
        if not graph.directed:
            link_rows.append(link_rows[-1]._replace(tail=edge.head, head=edge.tail))
    return link_rows


def _as_link_row(i: int, row: Any, what: str) -> LinkRow:
    try:
        link_row = LinkRow(*(() if isinstance(row, str) else row))
        hash((link_row.tail, link_row.head))
    except TypeError:
        such = "(tail, head, length, capacity)"
        raise WrongType(f"Link {i} of {what} must be {such}, not {shown(row)}.") from None
    tail, head, length, capacity, name = link_row
    called = f"{what}: link {i} ({shown(tail)} > {shown(head)})"
    if capacity is not None:
        capacity = as_number(capacity, f"{called}, its capacity", least=0.0)
    length = as_number(length, f"{called}, its length", above=0.0)
    return LinkRow(tail, head, length, capacity, as_text(name, f"{called}, its name"))


def no_way(source: Hashable, target: Hashable, setting: str) -> errors.UnreachableTarget:
    ends = f"from {shown(source)} to {shown(target)}"
    return errors.UnreachableTarget(
        f"No way leads {ends}. Leave it out, or add links.", setting=setting
    )


# --- networks -------------------------------------------------------------------------------------


def leading_away(links: Sequence[Link], lengths: Floats, source: Any, target: Any) -> list[int]:
    there, _ = graph_tools.shortest(links, lengths, source)
    back, _ = graph_tools.shortest([(head, tail) for tail, head in links], lengths, target)

    def place(node: Hashable) -> tuple[float, float]:
        return there.get(node, math.inf), -back.get(node, math.inf)

    ends = enumerate(links)
    return [i for i, (tail, head) in ends if tail in there and place(head) > place(tail)]


def shortest_path_dag(links: Sequence[Link], lengths: Floats, *ends: Hashable) -> list[int]:
    """Those that lie on a way from the source to the target, too."""
    source, target = ends
    away = leading_away(links, lengths, source, target)
    try:
        kept = graph_tools.useful([links[i] for i in away], source=source, target=target)
    except InvalidInput:
        raise no_way(source, target, "target") from None
    return [away[i] for i in kept]


class Demand(NamedTuple):
    """A commodity of a network: sources, targets and volume.

    Parameters
    ----------
    name : str
        What it is called, such as "SEA > NYC".
    sources : mapping
        The nodes where it starts, and the share that each sends.
    targets : mapping
        The nodes where it ends, and the share that each draws.
    volume : float
        How much is sent, in the unit of the capacities.

    Examples
    --------
    >>> links = [("SEA", "DEN"), ("DEN", "NYC")]
    >>> network = tw.networks.Network(links, source="SEA", target="NYC", demand=40.0)
    >>> network.demands
    (Demand(name='SEA > NYC', sources={'SEA': 1.0}, targets={'NYC': 1.0}, volume=40.0),)
    """

    name: str
    sources: Mapping[Hashable, float]
    targets: Mapping[Hashable, float]
    volume: float


class Cut(NamedTuple):
    """A link that carries nothing, and why.

    Parameters
    ----------
    link : str
        Its name.
    reason : str
        What keeps it from being used, in half a sentence.

    Examples
    --------
    >>> links = [("SEA", "DEN"), ("DEN", "SEA"), ("DEN", "NYC")]
    >>> tw.networks.Network(links, source="SEA", target="NYC").cut
    (Cut(link='DEN > SEA', reason='does not lead away from SEA'),)
    """

    link: str
    reason: str


class PathShare(NamedTuple):
    """A path that a decision uses: what a router installs.

    Parameters
    ----------
    commodity : str
        Whose path it is.
    nodes : tuple
        The nodes on it, in order.
    share : float
        The share of the commodity's demand that takes it.
    volume : float
        The same in the unit of the demands.
    by : tuple of str, default ()
        The names of those of its links that have others beside them, between the same nodes.

    Examples
    --------
    >>> network = tw.networks.Network([("SEA", "NYC")], source="SEA", target="NYC", demand=4.0)
    >>> network.path_shares(network.K.center)
    [PathShare(commodity='SEA > NYC', nodes=('SEA', 'NYC'), share=1.0, volume=4.0, by=())]
    """

    commodity: str
    nodes: tuple[Hashable, ...]
    share: float
    volume: float
    by: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The nodes with arrows between them, and links that the nodes do not tell."""
        nodes = " > ".join(map(str, self.nodes))
        return f"{nodes} by {', '.join(self.by)}" if self.by else nodes


@dataclass(frozen=True)
class _Ends(settings.Check):
    words: ClassVar[str] = "the name of a node, or shares by node such as { SEA = 0.6, SFO = 0.4 }"

    def __call__(self, value: Any, what: str) -> Any:
        if not isinstance(value, Mapping):
            value = dict(value) if is_pairs(value) else {Node()(value, what): 1.0}
        shares = {
            node: as_number(share, f"{what}: the share of {shown(node)}", above=0.0)
            for node, share in value.items()
        }
        require(shares, InvalidInput, f"{what} must be at least one node.")
        whole = sum(shares.values())
        refuse(abs(whole - 1.0) > 1e-6, f"{what}: shares by node must sum to 1, not to {whole:g}.")
        return tuple((node, share / whole) for node, share in shares.items())

    def read(self, value: Any) -> Any:
        if type(value) in (str, int):
            return value if value != "" else None
        pairs = tuple(value.items()) if isinstance(value, Mapping) else value
        return tuple((node, float(share)) for node, share in pairs) if is_pairs(pairs) else None


class _WhichPaths(settings.Text):
    def __call__(self, value: Any, what: str) -> Any:
        own = value is not None and not isinstance(value, str)
        return PathRows()(value, what) if own else super().__call__(value, what)


def is_pairs(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in value)
        and all(isinstance(node, Hashable) for node, _ in value)
        and all(settings.Number().read(share) is not None for _, share in value)
    )


@final
@dataclass(frozen=True, eq=False, repr=False)
class Network(OnLinks):
    """A network: links, demands, and which links or paths may be used.

    `K` is the set of decisions: the share of each commodity's demand on every link that it may
    use, or on each of its tunnels. `losses` and `limits` make functions on it from costs and
    capacities of links.

    Parameters
    ----------
    graph : iterable of tuple
        The links, (tail, head), (tail, head, length), (tail, head, length, capacity) or with a
        name behind those, each in its direction; lengths are 1 if none are given, and a
        capacity of None is none. Or a networkx graph, with `length` (else `weight`) and
        `capacity` as attributes, an undirected edge a link each way; or a frame of pandas or
        polars with such columns beside tail and head.
    source : array, optional
        The source of the one commodity: a node, or shares by node.
    target : array, optional
        Its target, likewise.
    commodities : iterable of Commodity or tuple, optional
        Or many, each (source, target, demand); or a frame with such columns.
    demand : float, default 1.0
        How much the one commodity sends.
    paths : array, default 'away'
        Which links or paths may be used: "away" for the links that lead away from a commodity's
        source, "all" for every link, "k-shortest" for the k shortest paths of each commodity.
        Or the paths themselves, as `Tunnels` takes them.
    k : int, default 3
        The largest number of tunnels per commodity.
    disjoint : bool, default False
        Whether the k shortest paths of a commodity share no link.

    Examples
    --------
    >>> links = [("SEA", "DEN"), ("DEN", "SEA"), ("DEN", "NYC"), ("SEA", "NYC")]
    >>> network = tw.networks.Network(links, source="SEA", target="NYC")
    >>> network.K
    FlowPolytope('SEA' -> 'NYC', 3 arcs, 3 nodes, dimension 1)
    >>> print(network.notes[0].partition(". ")[0])
    1 of 4 links are not used: DEN > SEA: does not lead away from SEA
    >>> losses = network.losses(np.ones((2, 4)))  # two rounds
    >>> limits = network.limits([[0.5, 1.0, 1.0, np.inf]] * 2)
    >>> tw.run(tw.Ensemble(network.K), tw.Stream(losses, limits)).rounds
    2
    """

    graph: GraphSetting
    source: Annotated[Any, _Ends()] = None
    target: Annotated[Any, _Ends()] = None
    commodities: Annotated[Iterable[Commodity | tuple[Any, ...]] | None, Commodities()] = None
    demand: Annotated[float, settings.Number(above=0.0)] = 1.0
    paths: Annotated[Any, _WhichPaths(choices=PATHS)] = "away"
    k: Annotated[int, settings.Count()] = 3
    disjoint: Annotated[bool, settings.Flag()] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if len({self.source is None, self.target is None, self.commodities is not None}) > 1:
            raise InvalidInput("Give a network source and target, or else commodities.")
        if self.disjoint and self.paths != "k-shortest":
            raise InvalidInput('Disjoint paths need paths = "k-shortest".', setting="disjoint")
        _ = self.K

    def __repr__(self) -> str:
        several = len(self.demands)
        sent = self.demands[0].name if several == 1 else f"{several:,} commodities"
        paths = repr(self.paths) if isinstance(self.paths, str) else f"{len(self.paths)} tunnels"
        return f"Network({len(self.links):,} links, {sent}, paths={paths})"

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """The names of the links: "SEA > DEN", or their own; all different."""
        return all_different(row.name or f"{row.tail} > {row.head}" for row in self._link_rows)

    @cached_property
    def capacities(self) -> Floats:
        """The capacity of each link; infinite if it has none of its own."""
        known = [np.inf if each.capacity is None else each.capacity for each in self._link_rows]
        return frozen(np.array(known))

    @cached_property
    def demands(self) -> tuple[Demand, ...]:
        """What must go from where to where."""
        if self.commodities is None:
            sources, targets = dict(self.source), dict(self.target)
            name = f"{_joined(sources)} > {_joined(targets)}"
            return (Demand(name, sources, targets, self.demand),)
        found = dict[str, Demand]()
        commodities: Any = self.commodities  # what its check makes of it
        for source, target, volume, *_ in commodities:
            name = f"{source} > {target}"
            refuse(name in found, f"Give {name} once, with all its demand.", setting="commodities")
            found[name] = Demand(name, {source: 1.0}, {target: 1.0}, volume)
        return tuple(found.values())

    @cached_property
    def volumes(self) -> Floats:
        """How much each commodity sends."""
        return frozen(np.array([each.volume for each in self.demands]))

    @cached_property
    def unit(self) -> float:
        """The unit of violations: the total demand."""
        return float(self.volumes.sum()) or 1.0

    @property
    def K(self) -> ConvexSet:
        """The set of decisions: shares of every commodity's demand on its links or tunnels."""
        return self._choice.K

    @property
    def incidence(self) -> Any:
        """The sparse matrix (links, entries of a decision) with a 1 where an entry is on a link."""
        return self._choice.incidence

    @property
    def owner(self) -> Int64s:
        """The commodity of each entry of a decision, by its place."""
        return self._choice.owner

    @property
    def tunnels(self) -> "Tunnels | None":
        """The paths that may be used, where those are tunnels."""
        return self._choice.tunnels

    @cached_property
    def cut(self) -> tuple[Cut, ...]:
        """The links that no decision uses, and why."""
        demand, leading = self.demands[0], set[int]()
        inside, reason = f"lies on no such way to {_joined(demand.targets)}", "is on no tunnel"
        if self.paths == "k-shortest":
            reason = f"is on none of the {self.k} shortest paths"
        elif self.tunnels is None and len(self.demands) > 1:
            reason = "leads no commodity away from its source and on to its target"
        elif self.tunnels is None and not self._is_used.all():
            reason = f"does not lead away from {_joined(demand.sources)}"
            for pair in product(demand.sources, demand.targets):
                leading.update(leading_away(self.links, self.lengths, *pair))
        unused = np.flatnonzero(~self._is_used).tolist()
        return tuple(Cut(self.link_names[i], inside if i in leading else reason) for i in unused)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the entries of a decision are called: "SEA > DEN", with several commodities "SEA >
        NYC: SEA > DEN", of a tunnel "SEA > NYC via DEN".
        """
        if self.tunnels is not None:
            return self.tunnels.names
        entries = [self.link_names[link] for link in self._link_of_entry]
        if len(self.demands) == 1:
            return tuple(entries)
        commodities = (self.demands[j].name for j in self.owner)
        return tuple(f"{name}: {link}" for name, link in zip(commodities, entries, strict=True))

    @cached_property
    def start(self) -> Array | None:
        """Where to begin where the center of `K` goes round in circles, with every link: the
        shortest paths. None elsewhere.
        """
        if self.paths != "all":
            return None
        return frozen(self.K.lmo(self.lengths[self._link_of_entry]))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes in sentences: which links are not used, and why; which tunnels share a
        bottleneck.
        """
        notes, reasons = list[str](), dict[str, list[str]]()
        for link, reason in self.cut:
            reasons.setdefault(reason, []).append(link)
        if reasons:
            why = "; ".join(f"{listed(links)}: {at}" for at, links in reasons.items())
            all_are = "With more tunnels more are" if self.tunnels else 'With paths = "all" all are'
            count = f"{len(self.cut)} of {len(self.links)} links"
            notes.append(f"{count} are not used: {why}. {all_are} used.")
        if shared := () if self.tunnels is None else self.tunnels.shared_bottlenecks:
            pairs = listed([f"{pair} ({self.link_names[link]})" for pair, link in shared])
            apart = self.paths == "k-shortest" and not self.disjoint
            more = " Paths that share no link: disjoint = true." * apart
            words = "All tunnels of a commodity share their bottleneck, which no split relieves"
            notes.append(f"{words}: {pairs}.{more}")
        return tuple(notes)

    def losses(self, costs: Array, demands: Array | None = None) -> Linear:
        """The losses: cost per unit times load, summed over links.

        Parameters
        ----------
        costs : array or DataFrame
            The cost per unit on each link, (rounds, links). The columns of a frame are found by
            name, those of `link_names`.
        demands : array or DataFrame, optional
            What each commodity sends, of shape (rounds, commodities), or by name. None: `volumes`
            in every round.

        Returns
        -------
        Linear
            The functions, on points of `K`.

        Examples
        --------
        >>> network = tw.networks.Network([("SEA", "NYC")], source="SEA", target="NYC", demand=4.0)
        >>> network.losses([[2.0], [3.0]]).values(network.K.center)
        array([ 8., 12.])
        """
        costs = self._rows(costs, "costs")
        sent, on_links = self._sent(demands, len(costs)), self.tunnels is None
        per_entry = costs[:, self._link_of_entry] if on_links else costs @ self.incidence
        with np.errstate(over="ignore"):
            found = np.ascontiguousarray(sent[:, self.owner] * per_entry)
        refuse(not np.isfinite(found).all(), "Costs times demands are too large: use other units.")
        return Linear._unchecked(C=frozen(found))

    def limits(self, capacities: Array, demands: Array | None = None) -> batch.Batch:
        """The constraints: the largest overload of a link, in shares of `unit`.

        Parameters
        ----------
        capacities : array or DataFrame
            What each link may carry, of shape (rounds, links); infinite if nothing limits it.
            The columns of a frame are found by name, those of `link_names`.
        demands : array or DataFrame, optional
            What each commodity sends, of shape (rounds, commodities), or by name. None: `volumes`
            in every round.

        Returns
        -------
        Capacity, LoadLimit or Unlimited
            The functions, on points of `K`.

        Examples
        --------
        >>> network = tw.networks.Network([("SEA", "NYC")], source="SEA", target="NYC", demand=4.0)
        >>> network.limits([[5.0], [3.0]]).values(network.K.center)
        array([-0.25,  0.25])
        """
        capacities = self._rows(capacities, "capacities", infinite=True)
        sent = self._sent(demands, len(capacities))
        limited = np.flatnonzero(np.isfinite(capacities).any(axis=0) & self._is_used)
        if not len(limited):
            return batch.Unlimited(self.K.shape, len(capacities))
        most = 2.0 * float(sent.sum(axis=1).max(initial=self.unit))
        capacities = np.where(np.isposinf(capacities), most, capacities)[:, limited] / self.unit
        one_each = len(self.demands) == 1 and self.tunnels is None
        if demands is None and one_each and len(limited) == self.K.shape[0]:
            order = np.searchsorted(limited, self._link_of_entry)
            return Capacity._unchecked(c=frozen(np.ascontiguousarray(capacities[:, order])))
        shared, key = self._choice.shared_limits, limited.tobytes()
        if key not in shared:  # the incidence of these links is the same in all rounds
            if len(shared) >= MOST_SHARED:
                shared.clear()
            names = tuple(self.link_names[link] for link in limited)
            zeros = np.zeros((1, len(self.demands))), np.zeros((1, len(limited)))
            shared[key] = LoadLimit(self.incidence[limited], *zeros, self.owner, names)
        of_round = {"demands": frozen(sent / self.unit), "capacities": frozen(capacities)}
        return LoadLimit._unchecked(**vars(shared[key]) | of_round)

    def max_utilization(self, capacities: Array, demands: Array | None = None) -> MaxUtilization:
        """The utilisation of the fullest link, load over capacity, as losses.

        Parameters
        ----------
        capacities : array or DataFrame
            What each link may carry, above 0, of shape (rounds, links); infinite if nothing limits
            it. The columns of a frame are found by name, those of `link_names`.
        demands : array or DataFrame, optional
            What each commodity sends, of shape (rounds, commodities), or by name. None: `volumes`
            in every round.

        Returns
        -------
        MaxUtilization
            The functions, on points of `K`.

        Examples
        --------
        >>> network = tw.networks.Network([("SEA", "NYC")], source="SEA", target="NYC", demand=4.0)
        >>> network.max_utilization([[5.0], [3.2]]).values(network.K.center)
        array([0.8 , 1.25])
        """
        capacities = self._rows(capacities, "capacities", infinite=True)
        sent = self._sent(demands, len(capacities))
        limited = np.flatnonzero(np.isfinite(capacities).any(axis=0) & self._is_used)
        require(len(limited), InvalidInput, "No link that is used has a capacity.", "capacities")
        for row, link in np.argwhere(capacities[:, limited] <= 0.0)[:1].tolist():
            found = f"{capacities[row, limited[link]]:g} for {self.link_names[limited[link]]}"
            words = f"Utilisation needs capacities above 0, not {found} in round {row + 1}"
            raise InvalidInput(f"{words}: give a small one.", setting="capacities")
        names = tuple(self.link_names[link] for link in limited)
        room = np.ascontiguousarray(capacities[:, limited])
        room = room[0] if (room == room[0]).all() else room  # which kernels read
        return MaxUtilization(
            self.incidence[limited], np.array(sent), room, self.owner, names=names
        )

    @cached_property
    def _is_used(self) -> NDArray:
        return np.asarray(np.diff(self.incidence.indptr) > 0)

    def loads(self, x: Array, demands: Array | None = None) -> Floats:
        """The load of every link.

        Parameters
        ----------
        x : array
            A decision.
        demands : array, optional
            What each commodity sends in the round. None: `volumes`.

        Returns
        -------
        array
            A volume for each link, in the unit of the capacities.

        Examples
        --------
        >>> network = tw.networks.Network([("SEA", "NYC")], source="SEA", target="NYC", demand=4.0)
        >>> network.loads(network.K.center)
        array([4.])
        """
        x = to_numpy(as_point(x, self.K.shape, "The decision"))
        with np.errstate(over="ignore"):
            return np.asarray(self.incidence @ (self._once(demands)[self.owner] * x))

    def path_shares(self, x: Array, demands: Array | None = None) -> list[PathShare]:
        """The paths that a decision uses, commodity by commodity, heaviest first.

        Parameters
        ----------
        x : array
            A decision, a point of `K`.
        demands : array, optional
            What each commodity sends in the round. None: `volumes`.

        Returns
        -------
        list of PathShare
            Commodity, nodes, share and volume of each.

        Raises
        ------
        NotAMember
            If x is not a decision.

        Examples
        --------
        >>> links = [("SEA", "DEN"), ("DEN", "NYC"), ("SEA", "NYC")]
        >>> network = tw.networks.Network(links, source="SEA", target="NYC", demand=4.0)
        >>> [(path.name, path.volume) for path in network.path_shares(np.array([0.25, 0.25, 0.75]))]
        [('SEA > NYC', 3.0), ('SEA > DEN > NYC', 1.0)]
        """
        sent = self._once(demands)
        x = to_numpy(as_point(x, self.K.shape, "The decision"))
        return [
            PathShare(of.name, nodes, share, share * float(volume), self._distinct_names(links))
            for of, volume, paths in zip(self.demands, sent, self._paths(x), strict=True)
            for share, links, nodes in paths
        ]

    def _paths(self, x: Floats) -> list[list[Path]]:
        K = self.K
        if self.tunnels is not None:
            found: list[list[Path]] = [[] for _ in self.demands]
            for j, share, tunnel in zip(self.owner, x.tolist(), self.tunnels.paths, strict=True):
                if share > _NOTHING:
                    found[j].append(Path(share, tunnel.links, tunnel.nodes))
            return [sorted(paths, key=lambda path: -path.weight) for paths in found]
        if isinstance(K, MultiFlow):
            return K.paths(x)
        flows: Any = K.parts if isinstance(K, Product) else (K,)
        parts = K.split(x) if isinstance(K, Product) else (x,)
        links = self._link_of_entry[: parts[0].shape[0]]  # alike for every commodity
        return [
            [path._replace(arcs=tuple(links[list(path.arcs)])) for path in flow.paths(own)]
            for flow, own in zip(flows, parts, strict=True)
        ]

    def _distinct_names(self, links: Sequence[int]) -> tuple[str, ...]:
        """The names of those of some links that have others beside them."""
        return tuple(self.link_names[i] for i in links if self._parallel[self.links[i]] > 1)

    @cached_property
    def _parallel(self) -> Counter[Link]:
        return Counter(self.links)

    def _rows(self, given: Array, what: str, *, infinite: bool = False) -> Floats:
        """Numbers of shape (rounds, links), or of demands (rounds, commodities)."""
        called = self._names_of_demands if what == "demands" else self.link_names
        given = frames.columns_in_order(given, called, f"The {what} of a network")
        array = to_numpy(as_numbers(given, f"The {what} of a network")).astype(np.float64)
        if array.ndim != 2 or array.shape[1] != len(called):
            shape = f"(rounds, {len(called)}), not {array.shape}"
            raise WrongShape(f"The {what} of a network must have shape {shape}.", setting=what)
        valid = np.isfinite(array) | (np.isposinf(array) if infinite else False)
        if what == "demands":
            valid = valid & (array >= 0.0)
        if not valid.all():
            row, column = map(int, np.argwhere(~valid)[0])
            kind = "at least 0" if what == "demands" else "numbers"
            found = f"{array[row, column]} for {called[column]} in round {row + 1}"
            raise InvalidInput(f"The {what} must be {kind}, not {found}.", setting=what)
        return array

    @property
    def _names_of_demands(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.demands)

    def _once(self, demands: Array | None) -> Floats:
        if demands is None:
            return self.volumes
        names = self._names_of_demands
        sent = as_numbers(frames.in_order(demands, names, "demands", (len(names),)), "demands")
        return np.asarray(self._rows(sent[None], "demands")[0])

    def _sent(self, demands: Array | None, rounds: int) -> Floats:
        if demands is None:
            return np.broadcast_to(self.volumes, (rounds, len(self.demands)))
        sent = self._rows(demands, "demands")
        require(len(sent) == rounds, WrongShape, f"Give demands of {rounds} rounds.", "demands")
        return sent

    @cached_property
    def _link_of_entry(self) -> Int64s:
        """The link of each entry, where entries are shares on links."""
        return np.asarray(self.incidence.tocsc().indices, dtype=np.int64)

    @cached_property
    def _choice(self) -> "_Choice":
        numbers = numbers_of(self.nodes)
        for each in self.demands:
            for end, nodes in (("source", each.sources), ("target", each.targets)):
                setting = end if self.commodities is None else "commodities"
                for node in nodes:
                    node_number(node, numbers, f"The {end}", setting)
            if each.sources.keys() & each.targets.keys():
                raise InvalidInput(f"{each.name} has the same node as both ends.", setting=setting)
        if self.paths == "away":
            return self._leading_away()
        if self.paths != "all":
            if not all(len(each.sources) == len(each.targets) == 1 for each in self.demands):
                raise InvalidInput("Tunnels have one source and one target.", setting="paths")
            from tidewolf.networks.tunnels import Tunnels

            own = None if self.paths == "k-shortest" else self.paths
            tunnels = Tunnels(self._link_rows, self._pairs, self.k, self.disjoint, own)
            return _Choice(tunnels.splits, tunnels.incidence, tunnels.path_pair, tunnels, {})
        count, several = len(self.links), len(self.demands) > 1
        flows = [_capacitated(self.links, each, each.name * several) for each in self.demands]
        K = Product(*flows) if several else flows[0]
        return self._on_links(
            K, np.tile(np.arange(count), len(flows)), np.repeat(np.arange(len(flows)), count)
        )

    @property
    def _pairs(self) -> list[tuple[Hashable, Hashable]]:
        return [(next(iter(each.sources)), next(iter(each.targets))) for each in self.demands]

    def _leading_away(self) -> "_Choice":
        ends, links, places = self._pairs, self.links, np.arange(len(self.links))

        def leading(pair: Link) -> list[int]:
            return shortest_path_dag(links, self.lengths, *pair)

        K: ConvexSet
        if len(ends) > 1:
            try:
                K = MultiFlow.from_edges(links, [(*pair, 1.0) for pair in ends])
            except errors.CyclicGraph:
                K = MultiFlow.from_edges(links, [(*pair, 1.0, leading(pair)) for pair in ends])
            return self._on_links(K, K.links.astype(np.int64), K.owner.astype(np.int64))
        (demand,), (source, target) = self.demands, ends[0]
        if len(demand.sources) == len(demand.targets) == 1:
            try:
                K = FlowPolytope.from_edges(links, source=source, target=target)
            except errors.CyclicGraph:
                places = np.array(leading(ends[0]))
                K = FlowPolytope.from_edges(
                    [links[i] for i in places], source=source, target=target
                )
        else:
            found = [leading(pair) for pair in product(demand.sources, demand.targets)]
            places = np.unique(np.concatenate(found))
            K = _capacitated([links[i] for i in places], demand)
        return self._on_links(K, places, np.zeros(len(places), dtype=np.int64))

    def _on_links(self, K: ConvexSet, links: Int64s, owner: Int64s) -> "_Choice":
        places, shape = (links, np.arange(len(links))), (len(self.links), len(links))
        incidence = sp.csr_array((np.ones(len(links)), places), shape=shape)
        return _Choice(K, incidence, owner, None, {})


class _Choice(NamedTuple):
    K: ConvexSet
    incidence: Any
    owner: Int64s
    tunnels: "Tunnels | None"
    # one limit for each of the last lists of limited links
    shared_limits: dict[bytes, LoadLimit]


# Shares below it are nothing.
_NOTHING = 1e-9


def _capacitated(links: Sequence[Link], demand: Demand, commodity: str = "") -> CapacitatedFlow:
    supplies = {**demand.sources, **{node: -share for node, share in demand.targets.items()}}
    return CapacitatedFlow.from_edges(links, supplies=supplies, upper=1.0, commodity=commodity)


def _joined(shares: Iterable[Hashable]) -> str:
    return " + ".join(map(str, shares))


def routes_of(
    K: ConvexSet, network: Network | None, x: Array, demands: Array | None = None
) -> list[PathShare] | None:
    """The paths of one decision, heaviest first, with volumes of these demands; None if it is no
    flow of a network, or of a set of flows.
    """
    if network is not None:
        return network.path_shares(x, demands)
    if not isinstance(K, FlowPolytope | MultiFlow):
        return None
    flows: Any = zip(K.demands, K.paths(x), strict=True) if isinstance(K, MultiFlow) else None
    return [
        PathShare(f"{nodes[0]} > {nodes[-1]}", nodes, weight / demand, weight)
        for demand, paths in flows or [(1.0, K.paths(x))]
        for weight, _, nodes in (paths if demand > 0.0 else ())
    ]
