"""Warm-up: small runs that compile the kernels of a run before its clock starts.

    set        an example of the same class, with the same switches; where a set is composed of
               others, so is its example
    learner    an example of the same class
    stream     linear losses, affine constraints or capacities, made here

Classes of others are never called, as what they count is their own: a subclass of a set or learner
of this package is warmed up as what it was made from, and a set written anew, whose vertices are
dense, as a ball. A kernel that no warm-up met is compiled when the run meets it, and the run's
clock does not count that either (`core.jit.compiling`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from inspect import isabstract
from typing import Any

import numpy as np

from tidewolf.core.arrays import eps_of, is_array, like, to_numpy
from tidewolf.core.batch import Stream
from tidewolf.core.vertices import DenseAtoms
from tidewolf.evaluation.membership import active_set
from tidewolf.functions import Affine, Capacity, Linear
from tidewolf.methods.base import Learner
from tidewolf.sets import L2Ball, Product
from tidewolf.sets.base import ConvexSet
from tidewolf.sets.calculus import Image

WARM_UP_ROUNDS = 24


def needs(learner: Learner[Any], stream: Stream) -> Hashable:
    """Equal for runs that need the same warm-up."""
    K = learner.hard_set
    return own_class(learner), kind_of_set(K), type(stream.constraints), _numbers(K.center)


def small_runs(learner: Learner[Any], stream: Stream, state: Any) -> Iterator[tuple[Any, Stream]]:
    """Learners and streams whose kernels are those of this run, which starts in `state`."""
    kind, K, active = own_class(learner), small_example(learner.hard_set), active_set(state)
    if K is None and active is not None and isinstance(active.atoms, DenseAtoms):
        K = L2Ball(2)
    if kind is None or K is None:
        return
    if _numbers(K.center) != _numbers(learner.hard_set.center):
        K = K.to(learner.hard_set.center)
    rng, center = np.random.default_rng(0), K.center
    slopes = like(rng.normal(size=(WARM_UP_ROUNDS, *K.shape)), center)
    limits: Any = Affine(-slopes, like(-0.1 * rng.random(WARM_UP_ROUNDS), center))
    if isinstance(stream.constraints, Capacity):
        most = 0.9 * float(to_numpy(center).max())
        limits = Capacity(like(np.full((WARM_UP_ROUNDS, *K.shape), most), center))
    examples = kind.examples(K, WARM_UP_ROUNDS)[:2]
    alike = [one for one in examples if (one.compiled is None) is (learner.compiled is None)]
    for example in alike or examples:
        yield example, Stream(Linear(slopes), limits)


def small_example(K: Any) -> ConvexSet | None:
    """A small set of the same kind; None for a class that is made from none of this package."""
    kind = own_class(K)
    if kind is None:
        return None
    if isinstance(K, Image):
        inside = small_example(K.K)
        return None if inside is None else _same_image(K, inside)
    if isinstance(K, Product):
        kinds = {kind_of_set(part): part for part in K.parts}.values()
        parts = [part for part in map(small_example, kinds) if part is not None]
        if len(parts) < len(kinds):
            return None
        several = len(parts) == 1 < len(K.parts)  # factors have steps of their own
        return Product(*parts, *parts) if several else Product(*parts)
    examples = [example for example in kind.examples() if example.dimension and example.radius]

    def fits(example: ConvexSet) -> tuple[int, bool, int]:
        return _alike(example, K), _layout(example) == _layout(K), example.dimension

    return max(examples, key=fits, default=None)


def _layout(K: ConvexSet) -> tuple[int, bool]:
    """How many axes points have, and whether they have one entry: one factor at most, whatever the
    set is a product of.
    """
    return len(K.shape), math.prod(K.shape) == 1


def _same_image(K: Image, inside: ConvexSet) -> ConvexSet:
    """The same image of another set, but moved by nothing."""
    given = K.fields() | {"K": inside}
    shifts = {name: 0.0 * inside.center for name, value in given.items() if is_array(value)}
    image: ConvexSet = K._written(**given | shifts)
    return image


def _alike(example: ConvexSet, K: ConvexSet) -> int:
    """How many switches are set alike."""
    theirs = K.fields()
    return sum(_switch(value) == _switch(theirs.get(at)) for at, value in example.fields().items())


def _switch(value: Any) -> Any:
    return value if isinstance(value, bool | str) else type(value)


def own_class(thing: Any) -> Any:
    """The first class of this package, with examples, that a set or learner is made from."""
    kinds = [kind for kind in type(thing).__mro__ if kind.__module__.startswith("tidewolf.")]
    usable = [kind for kind in kinds if hasattr(kind, "examples") and not isabstract(kind)]
    return usable[0] if usable else None


def kind_of_set(K: Any) -> Hashable:
    """Equal for sets with the same small example."""
    if isinstance(K, Image):
        return own_class(K), kind_of_set(K.K)
    if isinstance(K, Product):
        return own_class(K), frozenset(map(kind_of_set, K.parts))
    kind = own_class(K)
    if kind is None:
        return type(K), ()
    return kind, (_layout(K), *map(_switch, K.fields().values()))


def _numbers(center: Any) -> tuple[type, float]:
    """The array library and the precision of a set."""
    return type(center), eps_of(center)
