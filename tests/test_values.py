"""Values: equal when their settings are, printed as what they are, and with one identity on
every machine and in every version.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Annotated, Any

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import tidewolf as tw
from interpreter import python
from tidewolf import baselines, functions, learners, sets
from tidewolf.core.errors import NotSupported
from tidewolf.core.settings import Number
from tidewolf.core.values import Value, _given_settings, fingerprint, identity, is_same


@dataclass(frozen=True, eq=False, repr=False)
class Thing(Value):
    content: Any = None
    name: str = field(default="", metadata={"label": True})


@dataclass(frozen=True, eq=False, repr=False)
class Other(Value):
    content: Any = None


DIFFERENT = [
    *(None, True, False, 0, 1, -1, 0.0, 1.0, 0.1, float("inf"), "", "a", "None", "0", 2**80),
    *((), (1,), (1, 2), ((1,), 2), (1, (2,)), ("a", "b"), ("ab",), (1.0,), (True,)),
    *map(np.zeros, (0, 1, 2, (1, 2), (2, 1))),
    *(np.zeros(2, dtype=np.float32), np.zeros(2, dtype=int), (np.zeros(2), 1), (np.ones(2), 1)),
    *map(np.array, ([1.0, 2.0], [1.0, 3.0], [2.0, 1.0])),
    *(Thing(1), Thing(2), Other(1), Thing(Other(1)), tw.sets.Simplex(2), tw.sets.Simplex(2, 2.0)),
]


def test_things_that_differ_are_neither_equal_nor_alike():
    things = [Thing(content) for content in DIFFERENT]
    assert len({identity(thing) for thing in things}) == len(things)
    for i, a in enumerate(things):
        for b in things[:i]:
            assert a != b, (a, b)


def test_equal_things_have_equal_hashes_and_identities():
    pairs = [
        (np.array([0.0, 1.0]), np.array([-0.0, 1.0])), (0.0, -0.0),
        (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))),
        (np.arange(6.0)[::2], np.array([0.0, 2.0, 4.0])), ((1, np.ones(2)), (1, np.ones(2))),
        (Thing(np.ones(2)), Thing(np.ones(2))), (np.ones(2), strict.ones(2)),
    ]  # fmt: skip
    for a, b in pairs:
        assert Thing(a) == Thing(b)
        assert hash(Thing(a)) == hash(Thing(b))
        assert identity(Thing(a)) == identity(Thing(b))
    assert (identity(np.float64(0.5)), identity(np.int64(3))) == (identity(0.5), identity(3))
    assert tw.sets.Box([-0.0], [1.0]) == tw.sets.Box([0.0], [1.0])
    assert len({tw.sets.Box([-0.0], [1.0]), tw.sets.Box([0.0], [1.0])}) == 1


def test_labels_decide_equality_but_not_the_identity():
    assert Thing(1, "a") != Thing(1, "b")
    assert identity(Thing(1, "a")) == identity(Thing(1, "b"))


# --- identities that last -------------------------------------------------------------------------

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
contents = st.recursive(
    plain | st.lists(st.floats(-9, 9), max_size=3).map(np.array),
    lambda inside: st.lists(inside, max_size=2).map(tuple),
    max_leaves=4,
)
settings = st.dictionaries(st.sampled_from("abcdef"), contents, max_size=4)


def made(name, given, defaults):
    """A value of a class of this name with these settings; those in `defaults` have one."""
    required = [(key, Any) for key in given if key not in defaults]
    optional = [(key, Any, field(default_factory=lambda v=v: v)) for key, v in defaults.items()]
    how = {"bases": (Value,), "frozen": True, "eq": False, "repr": False}
    kind = make_dataclass(name, [*required, *optional], **how, namespace={"__module__": __name__})
    return kind(**given)


@given(settings, settings)
def test_a_setting_that_is_added_with_a_default_changes_no_identity(given, added):
    added = {key: value for key, value in added.items() if key not in given}
    before = made("Kind", given, {})
    assert identity(made("Kind", given, added)) == identity(before)
    assert identity((made("Kind", given, added), 1)) == identity((before, 1))
    assert identity(made("Kind", dict(reversed(given.items())), added)) == identity(before)


@given(settings, settings, settings)
def test_equal_values_and_only_they_have_equal_identities(first, second, defaults):
    values = [made("Kind", {**defaults, **part}, defaults) for part in (first, second)]
    parts = [Thing(tuple(sorted({**defaults, **part}.items()))) for part in (first, second)]
    assert (identity(values[0]) == identity(values[1])) == (parts[0] == parts[1])


def test_an_identity_is_of_the_kind_and_not_of_where_it_is_defined():
    assert identity(made("Kind", {"a": 1}, {})) != identity(made("Other", {"a": 1}, {}))
    assert identity(made("Kind", {"a": 1}, {})) == identity(made("_Kind", {"a": 1}, {}))
    renamed = made("Renamed", {"a": 1}, {})
    type(renamed).kind_name = "Kind"
    assert identity(renamed) == identity(made("Kind", {"a": 1}, {}))
    module = made("Kind", {"a": 1}, {})
    type(module).__module__ = "elsewhere"
    assert identity(module) == identity(made("Kind", {"a": 1}, {}))


@dataclass(frozen=True, eq=False, repr=False)
class Declared(Value):
    size: Annotated[float, Number("A size.")] = 1


@dataclass(frozen=True, eq=False, repr=False)
class Bare(Value):
    kind_name = "Declared"


def test_a_default_is_one_in_whatever_form_it_is_given():
    assert identity(Declared()) == identity(Declared(1)) == identity(Declared(np.float64(1.0)))
    assert identity(Declared()) == identity(Bare())
    assert identity(Declared(2)) == identity(Declared(2.0)) != identity(Bare())


def test_identities_of_this_version_stay_what_they_are():
    """Files hold them. If one of these changes, earlier files are refused."""
    assert identity(tw.sets.Simplex(3)) == "3:5341899dcd65b7899ffc7551688efb83"
    assert identity(tw.sets.Box([0.0, 0.0], [1.0, 2.0])) == "3:e05797a510bf1ab5091085b43f873cdf"
    several = (1, 0.5, "a", None, True, np.arange(3.0))
    assert identity(several) == "3:e9b2e92f995e84eff3d5ff69600277ba"


def test_values_print_as_what_they_are():
    assert repr(Thing((1, 2))) == "Thing(content=(1, 2), name='')"
    assert repr(Other(np.array([1.0, 0.5]))) == "Other(content=[1, 0.5])"
    assert repr(Other(np.ones((2, 3)))) == "Other(content=<2x3 float64>)"
    assert repr(Other(tuple(range(9)))) == "Other(content=<9 items>)"
    assert repr(Other(1 / 3)) == "Other(content=0.333333)"


@pytest.mark.parametrize("content", [lambda: 0, {}], ids=["function", "dict"])
def test_what_has_no_content_to_compare_has_no_identity(content):
    with pytest.raises(NotSupported):
        identity(Thing(content))


def examples():
    kinds = [kind for kind in (*sets.every(), *functions.every()) if kind is not functions.Custom]
    made = [thing for kind in kinds for thing in kind.examples()]
    for K in [K for K in made if isinstance(K, tw.sets.Simplex | tw.sets.FlowPolytope)]:
        for kind in (*learners.every().values(), *baselines.every().values()):
            made += kind.examples(K, 10)
    return made


def test_identities_are_the_same_in_another_process_with_another_hash_seed():
    program = "from test_values import *; print(*map(identity, examples()))"
    here = [identity(value) for value in examples()]
    assert python("-c", program, env={**os.environ, "PYTHONHASHSEED": "77"}).split() == here
    assert len(set(here)) == len(here)


def test_what_an_identity_leaves_out_is_what_the_constructor_puts_in():
    """Else a setting could be added that every value then has, and files would be orphaned."""
    for value in examples():
        kind = type(value)
        labels = {f.name: getattr(value, f.name) for f in fields(kind) if f.metadata.get("label")}
        if kind.__dataclass_params__.init:
            assert kind(**_given_settings(value), **labels) == value


# --- fingerprints: what files compare -------------------------------------------------------------

entries = st.just(0.0) | st.floats(1e-3, 1e3) | st.floats(-1e3, -1e-3)


SHAPES = st.tuples(st.integers(2, 40), st.integers(1, 12))


@given(arrays(np.float64, SHAPES, elements=entries), st.integers(0, 9))
def test_a_fingerprint_forgives_rounding_and_nothing_else(points, seed):
    rng, size = np.random.default_rng(seed), float(np.abs(points).max())
    mine = fingerprint(Thing(points))
    for noise in (rng.uniform(-1.0, 1.0, points.shape), np.ones(points.shape)):
        assert is_same(mine, fingerprint(Thing(points + 0.99e-9 * size * noise)))
    one = np.zeros(points.shape)
    one.flat[rng.integers(points.size)] = 1.0
    slots = -(-(points.size + 1) // 256)
    assert not is_same(mine, fingerprint(Thing(points + (size or 1.0) * 1.1e-8 * slots * one)))


def test_a_fingerprint_tells_settings_apart():
    K, hull = tw.sets.Simplex(3), np.exp(np.random.default_rng(0).normal(size=(9, 4)))
    same = (tw.LyapunovDescent(K, caution=0.3), tw.LyapunovDescent(K, caution=0.1 + 0.2))
    assert is_same(*map(fingerprint, same))
    for one, other in (
        (tw.LyapunovDescent(K, caution=3.0), tw.LyapunovDescent(K, caution=3.0000001)),
        (tw.LyapunovDescent(K), tw.LyapunovDescent(tw.sets.Simplex(4))),
        (tw.LyapunovDescent(K), tw.LyapunovDescent(K, horizon=10)),
        (tw.LyapunovDescent(K), tw.LyapunovFrankWolfe(K)),
        (Thing(hull), Thing(hull[::-1].copy())),
        (Thing(hull), Thing(2.0 * hull)),
        (Thing(hull), Thing(-hull)),
        (Thing(hull), Thing(hull.astype(np.float32))),
        (Thing(np.array([1.0, np.inf])), Thing(np.array([np.inf, 1.0]))),
        (Thing(np.arange(3)), Thing(np.arange(1, 4))),
    ):
        assert not is_same(fingerprint(one), fingerprint(other)), (one, other)
    assert is_same(fingerprint(Thing(hull)), fingerprint(Thing(np.asfortranarray(hull))))
    for spoilt in ("", "3", "3:a", "3:a:b:c", fingerprint(Thing(hull))[:-9]):
        with suppress(ValueError):  # which `checkpoint.load` takes for a broken file
            assert not is_same(fingerprint(Thing(hull)), spoilt)
