"""Values: equal when their settings are, printed as what they are, and with one fingerprint on
every machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import tidewolf as tw
from tidewolf import functions, learners, rivals, sets
from tidewolf.core.errors import NotSupported
from tidewolf.core.values import Value, fingerprint
from tidewolf.sets import Box, FlowPolytope, Simplex


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
    *(
        np.zeros(0),
        np.zeros(1),
        np.zeros(2),
        np.zeros((1, 2)),
        np.zeros((2, 1)),
        np.zeros(2, dtype=np.float32),
        np.zeros(2, dtype=int),
    ),
    *(
        np.array([1.0, 2.0]),
        np.array([1.0, 3.0]),
        np.array([2.0, 1.0]),
        (np.zeros(2), 1),
        (np.ones(2), 1),
    ),
    *(Thing(1), Thing(2), Other(1), Thing(Other(1)), Simplex(2), Simplex(2, 2.0)),
]


def test_things_that_differ_are_neither_equal_nor_alike():
    things = [Thing(content) for content in DIFFERENT]
    assert len({fingerprint(thing) for thing in things}) == len(things)
    for i, a in enumerate(things):
        for b in things[:i]:
            assert a != b, (a, b)


def test_equal_things_have_equal_hashes_and_fingerprints():
    pairs = [
        (np.array([0.0, 1.0]), np.array([-0.0, 1.0])),
        (0.0, -0.0),
        (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))),
        (np.arange(6.0)[::2], np.array([0.0, 2.0, 4.0])),
        ((1, np.ones(2)), (1, np.ones(2))),
        (Thing(np.ones(2)), Thing(np.ones(2))),
        (np.ones(2), strict.ones(2)),
    ]
    for a, b in pairs:
        assert Thing(a) == Thing(b)
        assert hash(Thing(a)) == hash(Thing(b))
        assert fingerprint(Thing(a)) == fingerprint(Thing(b))
    assert Box([-0.0], [1.0]) == Box([0.0], [1.0])
    assert len({Box([-0.0], [1.0]), Box([0.0], [1.0])}) == 1


def test_numbers_of_numpy_are_fingerprinted_as_numbers():
    assert fingerprint(np.float64(0.5)) == fingerprint(0.5)
    assert fingerprint(np.int64(3)) == fingerprint(3)


def test_labels_decide_equality_but_not_the_fingerprint():
    assert Thing(1, "a") != Thing(1, "b")
    assert fingerprint(Thing(1, "a")) == fingerprint(Thing(1, "b"))


def test_things_of_other_kinds_are_not_equal():
    assert Thing(1) != Other(1)
    assert Thing(1) != 1
    assert Thing(1).__eq__(1) is NotImplemented


def test_values_print_as_what_they_are():
    assert repr(Thing((1, 2))) == "Thing(content=(1, 2), name='')"
    assert repr(Other(np.array([1.0, 0.5]))) == "Other(content=[1, 0.5])"
    assert repr(Other(np.ones((2, 3)))) == "Other(content=<2x3 float64>)"
    assert repr(Other(tuple(range(9)))) == "Other(content=<9 items>)"
    assert repr(Other(1 / 3)) == "Other(content=0.333333)"
    learner = tw.LyapunovDescent(Simplex(2), horizon=5)
    assert repr(learner).startswith(
        "LyapunovDescent(K=Simplex(n=2, total=1, at_most=False), horizon=5, caution=10, "
        "calls_per_round=1"
    )


def test_what_has_no_content_to_compare_cannot_be_fingerprinted():
    with pytest.raises(
        NotSupported,
        match=(
            r"A function cannot be fingerprinted: settings are numbers, text, arrays, and values "
            r"made of them\."
        ),
    ):
        fingerprint(Thing(lambda: 0))
    with pytest.raises(NotSupported, match=r"A dict cannot be fingerprinted"):
        fingerprint(Thing({}))


def examples() -> list[Value]:
    made: list[Value] = [K for kind in sets.every() for K in kind.examples()]
    made += [
        f for kind in functions.every() if kind is not functions.Custom for f in kind.examples()
    ]
    kinds = [*learners.every().values(), *rivals.every().values()]
    return made + [
        learner
        for kind in kinds
        for K in made
        if isinstance(K, Simplex | FlowPolytope)
        for learner in kind.examples(K, 10)
    ]


def test_settings_made_again_are_equal():
    for first, again in zip(examples(), examples(), strict=True):
        assert first is not again
        assert first == again
        assert hash(first) == hash(again)


def test_fingerprints_are_the_same_in_another_process_with_another_hash_seed():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_values; "
        "print(*map(test_values.fingerprint, test_values.examples()))"
    )
    here = [fingerprint(value) for value in examples()]
    found = subprocess.run(
        [sys.executable, "-c", program, __file__.rpartition("/")[0]],
        env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == here
    assert len(set(here)) == len(here)
