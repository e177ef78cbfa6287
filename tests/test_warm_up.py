"""A run compiles what its set needs, nothing else, outside its clock, on nothing of the user's."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import isabstract
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import tidewolf as tw
from covering import thinned
from tidewolf.core import jit as kernels
from tidewolf.core import jit_cache as kernel_cache
from tidewolf.core.jit import Kernel, compiling, kernel
from tidewolf.evaluation import recording
from tidewolf.evaluation.recording import Recording
from tidewolf.evaluation.warm_up import small_example
from tidewolf.functions import Affine, Capacity, Custom, Linear
from tidewolf.functions.support import FIRST
from tidewolf.projection import compiled
from tidewolf.sets import (
    ConvexSet,
    FlowPolytope,
    L2Ball,
    Product,
    Shrunk,
    Simplex,
    SpanningTrees,
    Translated,
)


def stream(K: Any, rounds: int = 40, capacity: bool = False) -> tw.Stream:
    rng = np.random.default_rng(1)
    slopes = rng.normal(size=(rounds, *K.shape))
    limits: Any = Affine(slopes, np.full(rounds, -0.1))
    if capacity:
        limits = Capacity(K.center + 0.01 * rng.random(slopes.shape))
    return tw.Stream(Linear(slopes[::-1].copy()), limits)


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every kernel whose machine code is asked for, as in a process that has none; light ones ask
    for it when they have been interpreted for long enough, whenever that is.
    """
    names, right = [], kernel_cache.KernelCache.load_overload
    light = {f"{k.plain.__module__}.{k.plain.__qualname__}" for k in every_kernel() if k.light}

    def load(self: Any, sig: Any, context: Any) -> Any:
        if self.name not in light:
            names.append(f"{self.name} {sig}")
        return right(self, sig, context)

    monkeypatch.setattr(kernel_cache.KernelCache, "load_overload", load)
    forget()
    return names


def every_kernel() -> list[Kernel]:
    """Those of modules; specialised ones are forgotten with the cache that holds them."""
    modules = [module for name, module in sys.modules.items() if name.startswith("tidewolf.")]
    return [each for m in modules for each in vars(m).values() if type(each) is Kernel]


def forget() -> None:
    """No kernel is compiled, no run was warmed up."""
    for each in every_kernel():
        each.forget()
    compiled.specialise.cache_clear()
    recording._warm.clear()


def other(K: ConvexSet) -> ConvexSet:
    """The same set, which remembers nothing."""
    return type(K)(**K.fields()) if not hasattr(K, "_written") else K._written(**K.fields())


SETS = {
    "ball": L2Ball(5),
    "simplex": Simplex(7),
    "at most": Simplex(7, at_most=True),
    "flow": FlowPolytope.from_edges([(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)], source=0, target=3),
    "trees": SpanningTrees([(i, j) for i in range(6) for j in range(i)]),
    "moved": Translated(Simplex(4), np.ones(4)),
    "product": Product(L2Ball(2), Simplex(4), Simplex(5)),
    "simplices": Product(Simplex(4), Simplex(5)),
}


KINDS = {kind.__name__: kind for kind in (tw.LyapunovDescent, tw.LyapunovFrankWolfe)}


@thinned(2, kind=KINDS, name={name: name for name in SETS})
def test_what_a_run_needs_is_compiled_before_its_clock_starts_and_nothing_else(kind, name, wanted):
    needed: set[str] = set()
    for _ in range(2):  # the first time callers that are compiled ask for those they call
        forget()
        wanted.clear()
        K = other(SETS[name])
        for _ in Recording(kind(K, horizon=40), stream(K), warm_up=False).advance():
            pass
        needed = set(wanted)
    forget()
    wanted.clear()
    K = other(SETS[name])
    on_its_way = Recording(kind(K, horizon=40), stream(K))
    before = set(wanted)
    wanted.clear()
    for _ in on_its_way.advance():
        pass
    assert wanted == []
    assert {name.split()[0] for name in before} == {name.split()[0] for name in needed}


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(tw.sets.__all__))
def test_every_set_is_warmed_up(name, wanted):
    kind = getattr(tw.sets, name)
    for K in kind.examples() if hasattr(kind, "shape") and not isabstract(kind) else ():
        if K.dimension > 0:
            forget()
            K = other(K)
            on_its_way = Recording(tw.LyapunovDescent(K, horizon=40), stream(K, capacity=True))
            wanted.clear()
            for _ in on_its_way.advance():
                pass
            assert wanted == []


class Counted:
    """What a user counts, over all instances."""

    calls: ClassVar[dict[str, int]] = {}

    @classmethod
    def count(cls, what: str) -> None:
        cls.calls[what] = cls.calls.get(what, 0) + 1


class Counting:
    """A set with a user's counter."""

    def answer(self, direction: Any, warm: Any = None) -> Any:
        Counted.count("answer")
        return super().answer(direction, warm)

    def infeasibility(self, x: Any) -> float:
        Counted.count("infeasibility")
        return super().infeasibility(x)

    @classmethod
    def examples(cls) -> Sequence[Any]:
        Counted.count("examples")
        return (cls(2),)


class CountedBall(Counting, L2Ball):  # type: ignore[misc]
    """A set of ours."""


@dataclass(frozen=True, eq=False, repr=False)
class Ball(ConvexSet):
    """A set of a user's own."""

    n: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n,)

    @property
    def center(self) -> Any:
        return np.zeros(self.n)

    @property
    def radius(self) -> float:
        return 1.0

    def lmo(self, direction: Any) -> Any:
        return -direction / max(float(np.linalg.norm(direction)), 1e-300)

    def infeasibility(self, x: Any) -> float:
        return max(0.0, float(np.linalg.norm(x)) - 1.0)


class OwnBall(Counting, Ball):  # type: ignore[misc]
    """The same, counted."""


@pytest.mark.parametrize("make", [OwnBall, lambda n: Shrunk(CountedBall(n), 0.5)])
def test_what_users_count_is_what_was_played(make, wanted):
    def value(t: int, x: Any) -> Any:
        Counted.count("loss")
        return x @ x

    def slope(t: int, x: Any) -> Any:
        Counted.count("slope")
        return 2.0 * x

    K, T = make(3), 30
    played = tw.Stream(Custom(value, slope, (3,), T), stream(K, T).constraints)
    learner = tw.LyapunovDescent(K, horizon=T)
    Counted.calls.clear()
    moves = list(tw.play(learner, played))
    alone = dict(Counted.calls)
    Counted.calls.clear()
    run = tw.run(learner, played)
    assert "examples" not in Counted.calls
    assert Counted.calls["answer"] == alone["answer"] == run.oracle_calls > 0
    assert (alone["loss"], alone["slope"]) == (T, T)
    for asked in ("loss", "slope"):  # and what the first updates' gradients are tested with
        assert T < Counted.calls[asked] <= T + 20 * FIRST
    assert Counted.calls["infeasibility"] == len(moves) + alone.get("infeasibility", 0)


def test_small_sets_are_of_the_same_make():
    assert small_example(OwnBall(3)) is None
    assert small_example(Translated(OwnBall(3), np.ones(3))) is None
    assert type(small_example(CountedBall(3))) is L2Ball
    assert small_example(Simplex(10**6, at_most=True)).at_most is True
    assert small_example(Simplex(10**6)).at_most is False
    many = small_example(Product(*[Simplex(n) for n in range(1000, 1100)], L2Ball(10**5)))
    assert [type(part) for part in many.parts] == [Simplex, L2Ball]
    assert small_example(Shrunk(Translated(L2Ball(1000), np.ones(1000)), 0.25)).factor == 0.25


class Compiling(tw.LyapunovDescent):  # type: ignore[misc]
    """A learner that meets a kernel nobody has compiled."""

    needs: ClassVar = tw.LyapunovDescent.needs
    fresh: ClassVar[list[Kernel]] = []

    def update(self, state: Any, seen: Any) -> Any:
        for each in self.fresh:
            each(1.0)
        return super().update(state, seen)


def test_no_clock_counts_compiling(monkeypatch: pytest.MonkeyPatch):
    def inner(x):
        return x + 0.5

    space = {"__name__": "somewhere", "inner": kernel(inner), "opaque": object()}
    exec("def never_kept(x):\n    return inner(x)\n    opaque", space)
    K = L2Ball(2)
    on_its_way = Recording(Compiling(K, horizon=3), stream(K, 3))
    monkeypatch.setattr(Compiling, "fresh", [kernel(space["never_kept"])])
    before = compiling()
    looks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(looks)))  # every look takes a second
    monkeypatch.setattr(recording, "time", clock)
    monkeypatch.setattr(kernels, "time", clock)
    assert list(on_its_way.advance()) == [1, 2, 3]
    assert compiling() - before == 2.0  # linking, then compiling, with what is called inside
    assert on_its_way.seconds == 3.0 + 2.0  # three rounds, and the looks around two compilings
