"""Every public callable with a call that is known to be good, and arguments that are not.

A door is a callable with the arguments of one good call, by name; `doors()` walks what the package
exports, so that a new set, function, learner or problem is found by itself. `answer` of a set takes
what an earlier answer gave as `warm`: that is nobody's to make up.
"""

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

import tidewolf as tw
from tidewolf import baselines, experiments, functions, learners, networks, problems, sets, testing
from tidewolf.core.errors import NegativeCapacity, ShortHorizon, TidewolfError
from tidewolf.core.feedback import Arrival, FirstOrder
from tidewolf.methods import base, capabilities
from tidewolf.sets import graph_tools


class Door(NamedTuple):
    """A callable and the arguments of a good call of it."""

    name: str
    call: Callable[..., Any]
    given: dict[str, Any]
    fixed: frozenset[str] = frozenset()
    """arguments that no hostile one takes the place of"""


@cache
def _anything():
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


def _arrays(good):
    """Arrays of the shape of a good one that are bad in other ways."""
    one, shape = good.reshape(-1).copy(), good.shape
    one[-1] = np.nan
    numbers = (np.inf, 1e300, -1e160, 1e-300, 0.0)
    kinds = (str, object, complex, np.float32, np.longdouble, good.dtype.newbyteorder())
    own = (np.float16, np.int8, bool)
    return [
        *(one.reshape(shape), -good - 1.0, np.full(shape, None), good[None], good.tolist()),
        *(np.full(shape, number) for number in numbers),
        *(good.astype(kind) for kind in kinds),
        *(np.ones(shape, dtype=kind) for kind in own),
        *(np.append(good.reshape(-1), 1.0), np.asfortranarray(good)),
        np.ma.masked_array(good, np.ones(shape, dtype=bool)),
        np.repeat(good, 2, axis=-1)[..., ::2] if good.ndim else good,
    ]


def hostile(value):
    """What takes the place of a good argument: anything, and bad arrays."""
    bad = [*_anything(), (i for i in range(3)), (i for i in [None, "a"])]  # generators run out
    if isinstance(value, np.ndarray | list | tuple):
        with suppress(TypeError, ValueError, OverflowError):
            good = np.asarray(value, dtype=float)
            bad += _arrays(good) if good.size else []
    return bad


def described(bad):
    """A hostile argument in a message."""
    kind = f"{bad.dtype} {bad.shape}" if isinstance(bad, np.ndarray) else type(bad).__name__
    return f"{kind} {str(bad)[:40]}"


def _stream(n, rounds=3):
    costs = np.arange(float(rounds * n)).reshape(rounds, n)
    limits = functions.Affine(np.ones((rounds, n)), np.full(rounds, 2.0))
    return tw.Stream(functions.Linear(costs), limits)


@cache
def _run():
    return tw.run(learners.LyapunovDescent(sets.Simplex(2), horizon=3), _stream(2))


@cache
def _comparison():
    kinds = [learners.LyapunovDescent, baselines.SinhaVaze]
    return tw.compare(kinds, {"mine": (sets.Simplex(2), _stream(2))})


def doors(folder):
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


def _door(name, call, known, *fixed):
    """A callable with those of these arguments that it takes; what has a default and none here is
    left to it.
    """
    parameters = inspect.signature(call).parameters.values()
    taken = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    given = {p.name: known[p.name] for p in taken if p.name in known}
    missing = [p.name for p in taken if p.default is p.empty and p.name not in given]
    assert not missing, f"No good argument is known for {name}: {missing}"
    return Door(name, call, given, frozenset({"warm", *fixed}))


def _methods(thing, known, *fixed, but=()):
    """The public methods of an object or a class."""
    kind = thing if isinstance(thing, type) else type(thing)
    for name in dir(kind):
        found = inspect.getattr_static(kind, name)
        is_own = inspect.isfunction(found) and not isinstance(thing, type)
        is_method = is_own or isinstance(found, classmethod | staticmethod)
        if is_method and not name.startswith("_") and name not in but:
            yield _door(f"{kind.__name__}.{name}", getattr(thing, name), known, *fixed)


def _sets():
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

    def with_commodity(*given, **named):
        return sets.MultiFlow.from_edges(edges, [sets.Commodity(*given, **named)])

    commodity = {"source": "s", "target": "t", "demand": 1.0, "links": [0, 2]}
    yield Door("Commodity", with_commodity, commodity)
    thin = {"sparse": csr_array(np.eye(3)), "left": np.ones((3, 1)), "right": np.ones((3, 1))}
    yield Door("SparsePlusLowRank", sets.SparsePlusLowRank, thin)
    known = {"links": edges, "source": "s", "target": "t", "lengths": [1.0] * 5}
    for name in graph_tools.__all__:
        yield _door(name, getattr(graph_tools, name), known)


def _networkx(edges):
    import networkx

    return networkx.DiGraph(edges)


def _networks():
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


def _functions():
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


def _custom():
    def slope(t, x):
        return np.array([1.0, 0.0])

    return {"value": lambda t, x: float(x[0]), "subgradient": slope, "shape": (2,), "rounds": 2}


def _hooks(kind):
    """What a learner writes for its base to call: no front doors."""
    own = {name for name in dir(kind) if inspect.isfunction(inspect.getattr_static(kind, name))}
    return [*own - {*dir(base.Learner)} - {*base.CHECKED}]


def _learners():
    K = sets.Simplex(2)
    names = ("loss_lipschitz", "constraint_lipschitz", "loss_size", "constraint_size")
    sizes = dict.fromkeys(names, 1.0)
    for kind in (*learners.every().values(), *baselines.every().values()):
        learner = kind.examples(K, 5)[0]
        some = {"K": K, "horizon": 5, "caution": 1.0, "calls_per_round": 1.0, "block": 1, **sizes}
        yield _door(kind.__name__, kind, {**some, "tolerance": 1e-3, "seed": 0, "window": 2})
        played, state, seen = tw.run(learner, _stream(2)), learner.start(), None
        k, stream = min(1, learner.rounds_left(state)), _stream(2)[:1]
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
        yield from _methods(learner, known, but=("theorem", "bound_between", *_hooks(kind)))
        if isinstance(learner, capabilities.BoundsParts):
            between = {**known, "start": 0}
            yield _door(f"{kind.__name__}.bound_between", learner.bound_between, between)
        if hasattr(kind, "theorem"):
            for start in (None, K.center):
                yield _door(f"{kind.__name__}.theorem", kind.theorem, {**known, "start": start})


def _problems(folder):
    for name, build in problems.every().items():
        defaults = {key: p.default for key, p in inspect.signature(build).parameters.items()}
        yield Door(name, build, {**defaults, "rounds": 3, "seed": 0})
        yield Door("named", problems.named, {"name": name})
    table, graph = folder / "table.csv", folder / "graph.csv"
    table.write_text("time,a,b\n1,2.0,3.0\n2,2.5,3.5\n")
    graph.write_text("tail,head,km\ns,a,1\na,t,2\n")
    plain = problems.FileFormat()
    yield Door("FileFormat", problems.FileFormat, vars(plain))
    yield Door("read_table", problems.read_table, {"path": table, "gaps": False, "format": plain})
    given = {"path": graph, "numbers": ["km"], "missing": 1.0, "directed": True, "format": plain}
    yield Door("read_graph", problems.read_graph, given)
    found = problems.read_graph(graph, numbers=["km"])
    yield Door("Graph.dag", found.dag, {"source": "s", "target": "t", "lengths": "km"})
    given = {"name": "mine", "K": sets.Simplex(2), "stream": _stream(2), "title": "", "period": 2}
    yield Door("Problem", problems.Problem, {**given, "labels": ("a", "b")})


def _projections():
    K, y = sets.Simplex(3), np.array([2.0, 0.0, -1.0])
    known = {"K": K, "y": y, "x0": K.center, "tol": 1e-2, "budget": 5, "before": y}
    known["after"] = K.center
    for name in ("afp", "afp_paper", "closer_to_all", "closer_to_center"):
        yield _door(name, getattr(tw.projection, name), known)
    active = tw.projection.ActiveSet.start(K)
    yield _door("ActiveSet.start", tw.projection.ActiveSet.start, known)
    yield _door("ActiveSet.project", active.project, known)


def _evaluations(folder):
    K, stream = sets.Simplex(2), _stream(2)
    learner = learners.LyapunovDescent(K, horizon=3)
    state, run = learner.start(), _run()
    yield Door("Stream", tw.Stream, {**stream.fields(), "seen": [True, False, True]})
    yield Door("Stream[]", stream.__getitem__, {"rounds": slice(0, 1)})
    told = (stream[:1].losses, stream[:1].constraints)
    known = {"time": 3.0, "context": 1, "advice": {"a": np.array([0.5, 0.5])}}
    known["forecast"] = told
    rounds = {"time": np.arange(3.0), "context": np.array([0.0, 1.0, 0.0])}
    rounds["advice"] = {"a": np.full((3, 2), 0.5)}
    yield Door("Stream", tw.Stream, {**stream.fields(), **rounds})
    told_of = tw.Stream(stream.losses, stream.constraints, **rounds)
    yield Door("Stream.known", told_of.info, {"t": 1})
    yield Door("Leader", tw.experts.Leader, {"every": 48, "rows": 1500, "window": None})
    yield Door("Static", tw.experts.Static, {})
    yield Door("Restarts", tw.experts.Restarts, {"every": 16, "kept": 12})
    budget = {"name": "usd", "total": 9.0, "per": "1d", "plan": None, "carry": True}
    yield Door("Budget", tw.Budget, budget)
    yield Door("RoundInfo", tw.RoundInfo, {**known, "unavailable": (1,)})
    yield Door("RoundInfo", tw.RoundInfo, {"time": "2026-03-01T12:00", "context": [0.5, 0.5]})
    yield Door("Session.play", lambda **given: tw.Session(learner).play(**given), known)
    yield Door("Season", tw.experts.Season, {"period": 96, "cells": 4})
    yield Door("Season", tw.experts.Season, {"period": "1d", "cells": 4})
    yield Door("Categories", tw.experts.Categories, {"n": 2})
    asked = {"learner": learner, "stream": stream, "K": K, "run": run, "shortest": 2}
    asked |= {"comparator": run.comparator, "decisions": True, "every": 2, "state": state}
    asked |= {"start": 0, "stop": 2, "context": tw.experts.Season(2, 2)}
    made = ((learners.LyapunovDescent(K, horizon=t), _stream(2, t)) for t in (8, 16, 32))
    asked["runs"] = [tw.run(*each) for each in made]
    asked |= {"learners": [learners.LyapunovDescent], "streams": {"mine": (K, stream)}}
    asked |= {"cautions": [1.0], "budgets": [1.0], "seeds": [0], "progress": lambda *_: None}
    for call in (tw.run, tw.best_in_hindsight, tw.intervals, tw.rates, tw.compare):
        yield _door(call.__name__, call, asked)
    played = {"learner": learner, "stream": stream, "state": state}
    yield Door("play", lambda **given: next(tw.play(**given), None), played)
    costs, capacities = np.ones(2), np.array([0.5, 1.0])
    one = {"costs": costs, "capacities": capacities, "time": 3.0, "played": K.center}
    yield Door("play(a mapping)", lambda **given: next(tw.play(learner, [given])), one)
    both = {"losses": stream.losses, "constraints": [stream.constraints, stream.constraints]}
    yield Door("Stream", tw.Stream, both)
    comparison = _comparison()
    comparison.save(folder / "comparison")
    pick = {"stream": "mine", "learner": "LyapunovDescent", "baseline": "SinhaVaze", "budget": 1.0}
    pick |= {"seconds": 1e9, "caution": 10.0, "folder": folder / "comparison", "force": True}
    yield from _methods(comparison, pick, but=("plot",))
    yield from _methods(run, {}, but=("plot",))
    count = itertools.count()

    def opened(**given):
        usual = {"path": folder / f"session{next(count)}", "learner": learner}
        with tw.Session.open(**{**usual, **given}) as session:
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
    bandit = learners.BanditPrimalDual(K, horizon=3)
    slope = {"loss_gradient": [1.0, 2.0], "constraint_gradient": [1.0, 1.0]}
    for teacher, given in (
        (learner, {**slope, "constraint_value": 0.5}),
        (learner, dict(zip(("loss", "constraint"), told, strict=True))),
        (learner, {"costs": np.ones(2), "capacities": np.ones(2)}),
        (bandit, {"loss_value": 1.0, "constraint_value": 0.5}),
    ):
        yield Door("Session.observe", partial(_observe, teacher), given)


def _observe(teacher, **given):
    return tw.Session(teacher).observe(**given)


def _experiments(folder):
    Experiment, Choice = experiments.Experiment, experiments.Choice
    some = Experiment("small", Choice("scheduling"), rounds=3)
    given = {"name": "small", "stream": Choice("scheduling"), "hard_set": None}
    given |= {"learners": (Choice("LyapunovDescent"),), "rounds": 3, "seeds": (0,), "title": ""}
    given |= {"cautions": (1.0,), "swept": (("horizons", (3, 6)),), "folder": folder / "out"}
    given["checkpoint_seconds"] = 10.0
    yield Door("Experiment", Experiment, given)
    yield Door("Experiment.builtin", Experiment.builtin, {"name": "scheduling"})
    yield Door("Experiment.builtin(share=)", partial(Experiment.builtin, "abilene"), {"share": 0.5})
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
    given = {"path": folder / "runs", "experiment": some, "force": True}
    yield Door("RunFolder.create", experiments.RunFolder.create, given)
    experiments.RunFolder.create(folder / "there", some)
    yield Door("RunFolder.open", experiments.RunFolder.open, {"path": folder / "there"})


def _checks():
    K = sets.Simplex(2)
    known = {"K": K, "f": functions.Linear(np.ones((2, 2))), "points": [np.zeros(2)], "seed": 0}
    known |= {"learner": learners.LyapunovDescent(K, horizon=3), "stream": _stream(2)}
    for check in (testing.check_set, testing.check_function, testing.check_learner):
        yield _door(check.__name__, check, known)


def used(found):
    """What a caller does first with what a constructor gave: a set, functions or a learner that was
    accepted can be used.
    """
    if isinstance(found, Iterator):
        found = next(found, None)
    if isinstance(found, sets.ConvexSet):
        x, _ = found.center, (repr(found), hash(found), found.shape, found.dimension, found.radius)
        found.lmo(0.0 * x), found.tangent(x), found.infeasibility(x)
        found.diameter, found.inner_radius  # noqa: B018
    elif isinstance(found, tw.functions.Batch):
        repr(found), len(found), found.shape, found[:1]
    elif isinstance(found, base.Learner):
        state = found.start()
        repr(found), found.act(state), found.notes(state), found.guarantee()
        found.rounds_left(state)
    elif isinstance(found, experiments.Experiment):
        repr(found), found.toml(), found.entrants()
    elif isinstance(found, tw.Stream | problems.Problem | tw.Session):
        repr(found), len(found)


def knock(call, given):
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
            return None if str(error).strip() else f"{type(error).__name__} without a sentence"
        except Exception as error:
            frames = extract_tb(error.__traceback__)
            ours = [frame for frame in frames if "tidewolf" in frame.filename]
            if isinstance(error, TypeError) and not ours and "argument" in str(error):
                return None  # Python's own: an argument is missing, or one too many
            at = ours[-1] if ours else frames[-1]
            place = f"{at.filename.split('tidewolf/')[-1]}:{at.lineno} {at.name}"
            return f"{type(error).__name__}: {' '.join(str(error).split())[:90]}  [{place}]"
    return None
