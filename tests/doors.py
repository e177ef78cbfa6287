"""Every public callable with a call that is known to be good, and arguments that are not.

A door is a callable with the arguments of one good call, by name; `doors()` walks what the package
exports, so that a new set, function, learner or problem is found by itself. `answer` of a set takes
what an earlier answer gave as `warm`: that is nobody's to make up.
"""

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

import tidewolf as tw
from tidewolf import baselines, experiments, functions, learners, networks, problems, sets, testing
from tidewolf.core.batch import Batch
from tidewolf.core.errors import NegativeCapacity, ShortHorizon, TidewolfError
from tidewolf.core.feedback import Arrival, FirstOrder
from tidewolf.methods.base import CHECKS, Learner
from tidewolf.methods.capabilities import BoundsParts
from tidewolf.sets import graph_tools


class Door(NamedTuple):
    """A callable and the arguments of a good call of it."""

    name: str
    call: Callable[..., Any]
    given: dict[str, Any]
    fixed: frozenset[str] = frozenset()
    """arguments that no hostile one takes the place of"""


@cache
def _anything() -> list[Any]:
    """What no argument expects."""
    inf, nan, K = float("inf"), float("nan"), sets.Simplex(2)
    return [
        None, True, "text", "", b"bytes", nan, inf, -inf, 0, -1, -2.5, 0.5, 7, 1e308, 1e200, 1e-200,
        5e-324, 10**400, 3 + 4j, [], (), {}, {"a": 1.0, 3: None}, {1, 2}, [1, 2], (1.5, None),
        [[1, 2], [3]], ["a", "b"], [None], [[[[1.0]]]], [inf, nan], [1e300, -1e300], [1e-300],
        np.array(["a", "b", "c"]), np.array([None, 1.0, "x"], dtype=object), np.array([1.0 + 2.0j]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros(2, dtype=[("a", float), ("b", int)]), np.zeros(0), np.zeros((2, 0)), np.array(2.0),
        np.ones(3, dtype=np.float32), np.ones(2, dtype=np.float16), np.full(3, nan), np.arange(3.0),
        np.ones((2, 3)), np.arange(9.0).reshape(3, 3), np.array([1, -5, 99]),
        np.array([True, False]), np.ma.masked_array([1.0, 2.0], [True, False]),
        csr_array(np.eye(2)), range(3),
        slice(None, None, 2), object(), int, lambda *_, **__: None, Path("/nowhere/at/all"), "\0",
        K, sets.Simplex, sets.Box(np.zeros((2, 2)), np.ones((2, 2))), learners.LyapunovDescent(K),
        learners.LyapunovDescent, functions.Linear(np.ones((2, 2))), _stream(2),
        np.datetime64("2020-01-01"), [("s", "t")], [(1, 2, 3)], [("s", "s")],
        [["s", []], [{}, "t"]],
    ]  # fmt: skip


def _arrays(good: Any) -> list[Any]:
    """Arrays of the shape of a good one that are bad in other ways."""
    one, shape = good.reshape(-1).copy(), good.shape
    one[-1] = np.nan
    numbers = (np.inf, 1e300, -1e160, 1e-300, 0.0)
    kinds = (str, object, complex, np.float32, np.longdouble, good.dtype.newbyteorder())
    return [
        one.reshape(shape),
        *(np.full(shape, number) for number in numbers),
        -good - 1.0,
        *(good.astype(kind) for kind in kinds),
        np.full(shape, None),
        *(np.ones(shape, dtype=kind) for kind in (np.float16, np.int8, bool)),
        np.ma.masked_array(good, np.ones(shape, dtype=bool)),
        good[None],
        np.append(good.reshape(-1), 1.0),
        np.asfortranarray(good),
        np.repeat(good, 2, axis=-1)[..., ::2] if good.ndim else good,
        good.tolist(),
    ]


def hostile(value: Any) -> list[Any]:
    """What takes the place of a good argument: anything, and bad arrays."""
    bad = [*_anything(), (i for i in range(3)), (i for i in [None, "a"])]  # generators run out
    if isinstance(value, np.ndarray | list | tuple):
        with suppress(TypeError, ValueError, OverflowError):
            good = np.asarray(value, dtype=float)
            bad += _arrays(good) if good.size else []
    return bad


def described(bad: Any) -> str:
    """A hostile argument in a message."""
    kind = f"{bad.dtype} {bad.shape}" if isinstance(bad, np.ndarray) else type(bad).__name__
    return f"{kind} {str(bad)[:40]}"


def _stream(n: int, rounds: int = 3) -> tw.Stream:
    costs = np.arange(float(rounds * n)).reshape(rounds, n)
    return tw.Stream(
        functions.Linear(costs), functions.Affine(np.ones((rounds, n)), np.full(rounds, 2.0))
    )


@cache
def _run() -> tw.Run:
    return tw.run(learners.LyapunovDescent(sets.Simplex(2), horizon=3), _stream(2))


@cache
def _comparison() -> tw.Comparison:
    return tw.compare(
        [learners.LyapunovDescent, baselines.SinhaVaze], {"mine": (sets.Simplex(2), _stream(2))}
    )


def doors(folder: Path) -> Iterator[Door]:
    """All of them; files are written below `folder`."""
    yield from _sets()
    yield from _networks()
    yield from _functions()
    yield from _learners()
    yield from _problems(folder)
    yield from _projections()
    yield from _evaluations(folder)
    yield from _experiments(folder)
    yield from _checks()


def _methods(
    thing: Any, arguments: Mapping[str, Any], *fixed: str, but: tuple[str, ...] = ()
) -> Iterator[Door]:
    """The public methods of an object or a class, with these arguments by name; what has a default
    and none here is left to it.
    """
    kind = thing if isinstance(thing, type) else type(thing)
    for name in dir(kind):
        found = inspect.getattr_static(kind, name)
        bound = isinstance(found, classmethod | staticmethod)
        if (
            name.startswith("_")
            or name in but
            or not (bound or (inspect.isfunction(found) and not isinstance(thing, type)))
        ):
            continue
        method = getattr(thing, name)
        wanted = inspect.signature(method).parameters.values()
        given = {
            p.name: arguments[p.name]
            for p in wanted
            if p.name in arguments and p.kind is not p.VAR_POSITIONAL
        }
        missing = [
            p.name
            for p in wanted
            if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]
        assert set(missing) <= set(given), (
            f"No good argument is known for {kind.__name__}.{name}: {missing}"
        )
        yield Door(f"{kind.__name__}.{name}", method, given, frozenset({"warm", *fixed}))


def _sets() -> Iterator[Door]:
    edges = [("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")]
    for kind in sets.every():
        for K in kind.examples():
            yield Door(kind.__name__, kind, K.fields())
            x = np.array(K.center, dtype=float)
            named = dict.fromkeys(("direction", "x", "y", "point", "reference"), x)
            made = {"edges": edges, "source": "s", "target": "t", "graph": _networkx(edges)}
            made["supplies"] = {"s": 1.0, "t": -1.0}
            more = {"upper": 2.0, "lower": 0.0, "commodities": [("s", "t", 2.0)]}
            more |= {"lengths": [1.0] * 5, "tolerance": 1e-9, "parts": [sets.Simplex(2)]}
            known = {**named, **made, **more, "vertex": K.atom(x)}
            if kind is sets.MultiFlow:
                known["w"] = np.ones(len(K.tails))
            yield from _methods(K, known)
    yield Door("Product.join", sets.Product(sets.Simplex(2), sets.Simplex(1)).join, {})

    def with_commodity(*given: Any, **named: Any) -> Any:
        return sets.MultiFlow.from_edges(edges, [sets.Commodity(*given, **named)])

    commodity = {"source": "s", "target": "t", "demand": 1.0, "links": [0, 2]}
    yield Door("Commodity", with_commodity, commodity)
    thin = {"sparse": csr_array(np.eye(3)), "left": np.ones((3, 1)), "right": np.ones((3, 1))}
    yield Door("SparsePlusLowRank", sets.SparsePlusLowRank, thin)
    for name in graph_tools.__all__:
        tool = getattr(graph_tools, name)
        known = {"links": edges, "source": "s", "target": "t", "lengths": [1.0] * 5}
        yield Door(name, tool, {key: known[key] for key in inspect.signature(tool).parameters})


def _networkx(edges: list[tuple[str, str]]) -> Any:
    import networkx

    return networkx.DiGraph(edges)


def _networks() -> Iterator[Door]:
    links = [("s", "a", 1.0, 2.0), ("s", "b", 1.0, 2.0), ("a", "t", 2.0, 1.0), ("b", "t", 1.0, 3.0)]
    given = {"graph": links, "pairs": [("s", "t"), ("a", "t")], "k": 2}
    yield Door("Tunnels", networks.Tunnels, given)
    known = {"demands": [[1.0, 2.0]], "capacities": [1.0, 2.0, 3.0, 4.0]}
    yield from _methods(networks.Tunnels(**given), known, but=("fields",))
    whole = {"graph": links, "commodities": [("s", "t", 2.0), ("a", "t", 1.0)], "paths": "away"}
    yield Door("Network", networks.Network, whole)
    flow = {"graph": links, "source": "s", "target": "t", "demand": 2.0, "paths": "all", "k": 2}
    yield Door("Network", networks.Network, flow)
    known = {"costs": [[1.0, 2.0, 3.0, 4.0]], "capacities": [[1.0, 2.0, 3.0, 4.0]]}
    known |= {"x": [0.5, 0.5, 0.5, 0.5], "demands": [[1.0]], "links": [0]}
    made = networks.Network(**flow)
    yield from _methods(made, known, but=("fields", "loads", "path_shares"))
    for method in (made.loads, made.path_shares):
        yield Door(method.__name__, method, {"x": [0.5, 0.5, 0.5, 0.5], "demands": [1.0]})


def _functions() -> Iterator[Door]:
    for kind in functions.every():
        for f in kind.examples():
            yield Door(kind.__name__, kind, _custom() if kind is functions.Custom else f.fields())
            points, weights = np.full((len(f), *f.shape), 0.5), np.ones(len(f))
            known = {"x": np.full(f.shape, 0.5), "weights": weights, "points": points}
            known |= {"parts": [f, f], "rounds": slice(0, 1)}
            yield from _methods(f, known, "rounds", but=("one", "of", "piece_gradients", "joined"))
            yield Door(f"{kind.__name__}[]", f.__getitem__, {"rounds": slice(0, 1)})
    rows = np.arange(6.0).reshape(3, 2)
    given = {"value": lambda x, row: (row * x).sum(), "shape": 2, "rounds": 3, "data": rows}
    yield Door("from_torch", functions.from_torch, given)
    yield Door("from_jax", functions.from_jax, given)
    yield Door("from_cvxpy", functions.from_cvxpy, {"expression": None, "variable": None})


def _custom() -> dict[str, Any]:
    return {
        "value": lambda t, x: float(x[0]),
        "subgradient": lambda t, x: np.array([1.0, 0.0]),
        "shape": (2,),
        "rounds": 2,
    }


def _hooks(kind: type) -> list[str]:
    """What a learner writes for its base to call: no front doors."""
    return [
        name
        for name in dir(kind)
        if inspect.isfunction(inspect.getattr_static(kind, name))
        and not hasattr(Learner, name)
        and name not in CHECKS
    ]


def _learners() -> Iterator[Door]:
    K = sets.Simplex(2)
    sizes = dict.fromkeys(
        ("loss_lipschitz", "constraint_lipschitz", "loss_size", "constraint_size"), 1.0
    )
    for kind in (*learners.every().values(), *baselines.every().values()):
        learner = kind.examples(K, 5)[0]
        takes = inspect.signature(kind).parameters
        some = {"K": K, "horizon": 5, "caution": 1.0, "calls_per_round": 1.0, "block": 1, **sizes}
        some |= {"tolerance": 1e-3, "seed": 0, "window": 2}
        yield Door(kind.__name__, kind, {name: at for name, at in some.items() if name in takes})
        played = tw.run(learner, _stream(2))
        state, seen = learner.start(), None
        k = min(1, learner.rounds_left(state))
        stream = _stream(2)[:1]
        if learner.needs is FirstOrder:
            seen = FirstOrder(np.ones(2), 0.5, np.ones(2), 1.5, 1.5, 1)
        elif learner.needs.__name__ == "Bandit":
            seen = learner.needs(np.ones(1), np.ones(1))
        else:
            seen = learner.needs(stream.losses, stream.constraints)
        known = {"K": K, "horizon": 400, **sizes, "start": None, "state": state, "k": k}
        known |= {"feedback": seen, "losses": stream.losses, "arrivals": [Arrival(0, seen)]}
        known |= {"rounds": [0], "record": played, "stop": 2, "data": learner.save(state)}
        known["info"] = tw.RoundInfo(time=3.0, context=0, advice={"a": [0.5, 0.5]})
        but = ("theorem", "bound_between", *_hooks(kind))
        yield from _methods(learner, known, but=but)
        between = {"record": played, "start": 0, "stop": 2}
        if isinstance(learner, BoundsParts):
            yield Door(f"{kind.__name__}.bound_between", learner.bound_between, between)
        if hasattr(kind, "theorem"):
            wanted = inspect.signature(kind.theorem).parameters
            given = {name: known[name] for name in wanted if name in known and name != "start"}
            for start in ({}, {"start": K.center}):
                yield Door(f"{kind.__name__}.theorem", kind.theorem, {**given, **start})


def _problems(folder: Path) -> Iterator[Door]:
    for name, build in problems.every().items():
        given = {"rounds": 3, "seed": 0}
        given |= {
            key: p.default
            for key, p in inspect.signature(build).parameters.items()
            if key not in given
        }
        yield Door(name, build, given)
        yield Door("named", problems.named, {"name": name})
    table, graph = folder / "table.csv", folder / "graph.csv"
    table.write_text("time,a,b\n1,2.0,3.0\n2,2.5,3.5\n")
    graph.write_text("tail,head,km\ns,a,1\na,t,2\n")
    plain = problems.FileFormat()
    yield Door("FileFormat", problems.FileFormat, vars(plain))
    yield Door("read_table", problems.read_table, {"path": table, "gaps": False, "format": plain})
    yield Door(
        "read_graph",
        problems.read_graph,
        {"path": graph, "numbers": ["km"], "missing": 1.0, "directed": True, "format": plain},
    )
    found = problems.read_graph(graph, numbers=["km"])
    yield Door("Graph.dag", found.dag, {"source": "s", "target": "t", "lengths": "km"})
    given = {"name": "mine", "K": sets.Simplex(2), "stream": _stream(2), "title": "", "period": 2}
    yield Door("Problem", problems.Problem, {**given, "labels": ("a", "b")})


def _projections() -> Iterator[Door]:
    K, y = sets.Simplex(3), np.array([2.0, 0.0, -1.0])
    known = {"K": K, "y": y, "x0": K.center, "tol": 1e-2, "budget": 5, "before": y}
    known["after"] = K.center
    for name in ("afp", "afp_paper", "closer_to_all", "closer_to_center"):
        door = getattr(tw.projection, name)
        yield Door(name, door, {key: known[key] for key in inspect.signature(door).parameters})
    active = tw.projection.ActiveSet.start(K)
    yield Door("ActiveSet.start", tw.projection.ActiveSet.start, {"K": K, "x0": K.center})
    yield Door("ActiveSet.project", active.project, {"K": K, "y": y, "tol": 1e-2, "budget": 5})


def _evaluations(folder: Path) -> Iterator[Door]:
    K, stream = sets.Simplex(2), _stream(2)
    learner = learners.LyapunovDescent(K, horizon=3)
    state, run = learner.start(), _run()
    yield Door("Stream", tw.Stream, {**stream.fields(), "seen": [True, False, True]})
    yield Door("Stream[]", stream.__getitem__, {"rounds": slice(0, 1)})
    known: dict[str, Any] = {
        "time": 3.0,
        "context": 1,
        "advice": {"a": np.array([0.5, 0.5])},
        "forecast": (stream[:1].losses, stream[:1].constraints),
    }
    rounds = {
        "time": np.arange(3.0),
        "context": np.array([0.0, 1.0, 0.0]),
        "advice": {"a": np.full((3, 2), 0.5)},
    }
    yield Door("Stream", tw.Stream, {**stream.fields(), **rounds})
    told_of = tw.Stream(stream.losses, stream.constraints, **rounds)
    yield Door("Stream.known", told_of.info, {"t": 1})
    yield Door("RoundInfo", tw.RoundInfo, {**known, "unavailable": (1,)})
    yield Door("RoundInfo", tw.RoundInfo, {"time": "2026-03-01T12:00", "context": [0.5, 0.5]})
    yield Door("Session.play", lambda **given: tw.Session(learner).play(**given), known)
    yield Door("Season", tw.experts.Season, {"period": 96, "cells": 4})
    yield Door("Season", tw.experts.Season, {"period": "1d", "cells": 4})
    yield Door("Categories", tw.experts.Categories, {"n": 2})
    asked = {"learner": learner, "stream": stream, "progress": lambda moment: None}
    asked |= {"comparator": run.comparator, "decisions": True, "every": 2}
    yield Door("run", tw.run, asked)
    asked = {"learner": learner, "stream": stream, "state": state}
    yield Door("play", lambda **given: next(tw.play(**given), None), asked)
    costs, capacities = np.ones(2), np.array([0.5, 1.0])
    one = {"costs": costs, "capacities": capacities, "time": 3.0, "played": K.center}
    yield Door("play(a mapping)", lambda **given: next(tw.play(learner, [given])), one)
    both = {"losses": stream.losses, "constraints": [stream.constraints, stream.constraints]}
    yield Door("Stream", tw.Stream, both)
    known = {"K": K, "stream": stream, "start": 0, "stop": 2, "context": tw.experts.Season(2, 2)}
    yield Door("best_in_hindsight", tw.best_in_hindsight, known)
    yield Door(
        "intervals", tw.intervals, {"run": run, "shortest": 2, "progress": lambda done, of: None}
    )
    runs = [tw.run(learners.LyapunovDescent(K, horizon=t), _stream(2, t)) for t in (8, 16, 32)]
    yield Door("rates", tw.rates, {"runs": runs})
    yield Door("compare", tw.compare, {
        "learners": [learners.LyapunovDescent], "streams": {"mine": (K, stream)}, "cautions": [1.0],
        "budgets": [1.0], "seeds": [0],
        "progress": lambda step, moment: None,
    })  # fmt: skip
    comparison = _comparison()
    comparison.save(folder / "comparison")
    pick = {"stream": "mine", "learner": "LyapunovDescent", "baseline": "SinhaVaze", "budget": 1.0}
    pick |= {"seconds": 1e9, "caution": 10.0}
    yield from _methods(
        comparison, {**pick, "folder": folder / "comparison", "force": True}, but=("plot",)
    )
    yield from _methods(run, {}, but=("plot",))
    count = itertools.count()

    def opened(**given: Any) -> tw.Session[Any]:
        with tw.Session.open(
            **{"path": folder / f"session{next(count)}", "learner": learner, **given}
        ) as session:
            return session

    yield Door("Session", tw.Session, {"learner": learner, "state": state})
    asked = {"url": "http://127.0.0.1:8000", "session": "routing", "token": "a"}
    yield Door("Client", tw.Client, {**asked, "timeout": 1.0, "attempts": 2})
    returns = np.array([[0.0, 0.1, 0.2], [0.1, 0.0, -0.1]])
    split = {"min_weights": 0.1, "max_weights": 0.8, "max_loss": 0.1, "loss": "linear"}
    yield Door("OnlineAllocator", lambda **given: tw.OnlineAllocator(**given).fit(returns), split)
    yield Door("Session.open", opened, {"path": folder / "kept", "learner": learner})
    for name, value in (("snapshot_every", 10), ("keep_history", True), ("read_only", False)):
        yield Door("Session.open", opened, {name: value})
    tw.Session(learner).save(folder / "session")
    yield Door("Session.load", tw.Session.load, {"path": folder / "session", "learner": learner})
    yield Door("Session.save", tw.Session(learner).save, {"path": folder / "saved"})
    told = {"loss_gradient": [1.0, 2.0], "constraint_value": 0.5, "constraint_gradient": [1.0, 1.0]}
    functions_told = {"loss": stream[:1].losses, "constraint": stream[:1].constraints}
    bandit = learners.BanditPrimalDual(K, horizon=3)
    for teacher, given in (
        (learner, told),
        (learner, functions_told),
        (learner, {"costs": np.ones(2), "capacities": np.ones(2)}),
        (bandit, {"loss_value": 1.0, "constraint_value": 0.5}),
    ):
        observe = partial(_observe, teacher)
        yield Door("Session.observe", observe, given)


def _observe(teacher: Learner[Any], **given: Any) -> Any:
    return tw.Session(teacher).observe(**given)


def _experiments(folder: Path) -> Iterator[Door]:
    Experiment, Choice = experiments.Experiment, experiments.Choice
    some = Experiment("small", Choice("scheduling"), rounds=3)
    given: dict[str, Any] = {
        "name": "small", "stream": Choice("scheduling"), "hard_set": None,
        "learners": (Choice("LyapunovDescent"),), "rounds": 3,
        "seeds": (0,), "cautions": (1.0,), "swept": (("horizons", (3, 6)),), "title": "",
        "folder": folder / "out",
        "checkpoint_seconds": 10.0,
    }  # fmt: skip
    yield Door("Experiment", Experiment, given)
    yield Door("Experiment.builtin", Experiment.builtin, {"name": "scheduling"})
    of_share = partial(Experiment.builtin, "abilene")
    yield Door("Experiment.builtin(share=)", of_share, {"share": 0.5})
    yield Door("Experiment.problem", some.problem, {"seed": 0})
    asked = {"entrant": Choice("SinhaVaze"), "problem": some.problem(0), "seed": 0}
    yield Door("Experiment.learner", some.learner, asked)
    yield Door("Experiment.resolved", some.resolved, {"rounds": 3})
    yield Door("Choice", Choice, {"name": "scheduling", "settings": (("a", 1),)})
    yield Door("Choice.of", Choice.of, {"name": "scheduling", "given": {"a": 1}})
    absent = dict.fromkeys(("weights", "budgets", "losses", "constraints"))
    both = dict.fromkeys(("costs", "capacities"), folder / "table.csv")
    yield Door("Tables", experiments.Tables, {**both, **absent})
    file = folder / "small.toml"
    file.write_text(some.toml())
    yield Door("load", experiments.load, {"path": file})
    (folder / "links.csv").write_text("tail,head\ns,a\na,t\n")
    (folder / "costs.csv").write_text("s > a,a > t\n1,2\n2,1\n")
    given = {"graph": folder / "links.csv", "source": "s", "target": "t", "demand": 2.0}
    given |= {"paths": "away", "k": 2, "costs": folder / "costs.csv", "gaps": "refuse"}
    yield Door("from_files", networks.from_files, given)
    yield Door(
        "RunFolder.create",
        experiments.RunFolder.create,
        {"path": folder / "runs", "experiment": some, "force": True},
    )
    experiments.RunFolder.create(folder / "there", some)
    yield Door("RunFolder.open", experiments.RunFolder.open, {"path": folder / "there"})


def _checks() -> Iterator[Door]:
    K, f = sets.Simplex(2), functions.Linear(np.ones((2, 2)))
    learner = learners.LyapunovDescent(K, horizon=3)
    yield Door("check_set", testing.check_set, {"K": K, "seed": 0})
    given = {"f": f, "seed": 0, "points": [np.zeros(2)]}
    yield Door("check_function", testing.check_function, given)
    given = {"learner": learner, "stream": _stream(2), "seed": 0}
    yield Door("check_learner", testing.check_learner, given)


def used(found: Any) -> None:
    """What a caller does first with what a constructor gave: a set, functions or a learner that was
    accepted can be used.
    """
    if isinstance(found, Iterator):
        found = next(found, None)
    if isinstance(found, sets.ConvexSet):
        x, _ = found.center, (repr(found), hash(found), found.shape, found.dimension, found.radius)
        found.lmo(0.0 * x), found.tangent(x), found.infeasibility(x)
        found.diameter, found.inner_radius  # noqa: B018
    elif isinstance(found, Batch):
        repr(found), len(found), found.shape, found[:1]
    elif isinstance(found, Learner):
        state = found.start()
        repr(found), found.act(state), found.notes(state), found.guarantee()
        found.rounds_left(state)
    elif isinstance(found, experiments.Experiment):
        repr(found), found.toml(), found.entrants()
    elif isinstance(found, tw.Stream | problems.Problem | tw.Session):
        repr(found), len(found)


def knock(call: Callable[..., Any], given: dict[str, Any]) -> str | None:
    """What a call showed that is none of ours, with the place it came from; None where it gave a
    value or one of our sentences.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ShortHorizon)
        warnings.simplefilter("ignore", NegativeCapacity)
        try:
            used(call(**given))
        except TidewolfError as error:
            said = str(error)
            return None if said.strip() else f"{type(error).__name__} without a sentence"
        except Exception as error:
            frames = extract_tb(error.__traceback__)
            ours = [frame for frame in frames if "tidewolf" in frame.filename]
            if isinstance(error, TypeError) and not ours and "argument" in str(error):
                return None  # Python's own: an argument is missing, or one too many
            at = ours[-1] if ours else frames[-1]
            place = f"{at.filename.split('tidewolf/')[-1]}:{at.lineno} {at.name}"
            return f"{type(error).__name__}: {' '.join(str(error).split())[:90]}  [{place}]"
    return None
