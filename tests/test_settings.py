"""Settings declare themselves: checks, keys of files and the names that errors carry."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.core import errors, settings, values
from tidewolf.core.settings import Count, Flag, Number, Numbers, Seed, Size, Text

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, eq=False, repr=False)
class Declared(values.Value):
    n: Annotated[int, Count("How many.")]
    share: Annotated[float | None, Number("What share.", least=0.0, most=1.0)] = None
    weights: Annotated[Any, Numbers("One for each.", axes=1)] = (1.0,)
    kind: Annotated[str, Text("Which kind.", choices=("one", "two"))] = "one"

    @classmethod
    @settings.names_in_files
    def of(cls, sizes, *, kind="one"):
        return cls(len(sizes), kind=kind)


@dataclass(frozen=True, eq=False, repr=False)
class Plain(values.Value):
    """As somebody writes who has never heard of checks."""

    n: int
    tau: float = 1.0
    name: str = ""
    odd: Fraction | None = None


def test_a_declared_field_is_put_into_its_plain_form():
    made = Declared(np.int64(3), share=np.float32(0.5), weights=[1, 2])
    assert (type(made.n), type(made.share)) == (int, float)
    assert made.weights.dtype == np.float64
    assert not made.weights.flags.writeable


@pytest.mark.parametrize(
    ("given", "setting", "error"),
    [
        ({"n": 0}, "n", errors.InvalidInput),
        ({"n": 2.5}, "n", errors.InvalidInput),
        ({"n": 1, "share": 1.5}, "share", errors.InvalidInput),
        ({"n": 1, "share": "x"}, "share", errors.WrongType),
        ({"n": 1, "weights": [[1.0]]}, "weights", errors.WrongShape),
        ({"n": 1, "weights": None}, "weights", errors.WrongType),
        ({"n": 1, "kind": "three"}, "kind", errors.InvalidInput),
    ],
)
def test_a_refusal_names_setting_and_class_and_carries_the_name(given, setting, error):
    with pytest.raises(error, match=rf"^{setting} of Declared .*\.$") as caught:
        Declared(**given)
    assert caught.value.setting == setting
    assert pickle.loads(pickle.dumps(caught.value)).setting == setting


def test_none_passes_only_where_it_is_the_default():
    assert Declared(1, share=None).share is None
    with pytest.raises(errors.TidewolfError):
        Declared(None)


def test_a_dataclass_without_checks_needs_nothing():
    made = Plain("anything", tau=-1)
    assert (made.n, made.tau) == ("anything", -1)
    keys = {name: setting.words for name, setting in settings.settings_of(Plain).items()}
    plain = {"n": "a whole number", "tau": "a number", "name": "text"}
    assert keys == plain | {"odd": "a list of numbers or the name of a table"}
    assert not any(setting.declared for setting in settings.settings_of(Plain).values())


def test_a_marked_constructor_is_what_files_use():
    make = settings.constructor_of(Declared)
    assert list(settings.settings_of(make)) == ["sizes", "kind"]
    assert make(sizes=[4.0, 4.0]).n == 2
    assert settings.constructor_of(Plain) is Plain


@given(st.one_of(st.integers(), st.floats(), st.text(), st.booleans(), st.none()))
def test_what_a_file_says_is_read_by_kind_alone(value):
    whole, text, flag = type(value) is int, type(value) is str, type(value) is bool
    assert (Count().read(value) is not None) == whole
    assert (Text().read(value) is not None) == text
    assert (Flag().read(value) is not None) == flag
    number = type(value) is float or (whole and abs(value) < 2**1023)
    assert not number or Number().read(value) == value or math.isnan(value)
    assert type(value) in (int, float) or Number().read(value) is None


def test_lists_are_read_as_tuples_and_only_where_they_are_regular():
    assert Numbers().read([[1, 2], [3, 4]]) == ((1, 2), (3, 4))
    assert Numbers().read("points.csv") == "points.csv"
    for wrong in ([], [[1], [1, 2]], [1, "x"], [True], "", {}, [[]]):
        assert Numbers(axes=2).read(wrong) is None
    assert Size().read([2, 3]) == (2, 3)
    assert Size().read([2.0]) is None


def test_seeds_take_128_bits_and_sizes_their_shapes():
    assert Seed()(2**128 - 1, "seed") == 2**128 - 1
    assert Size()((2, 3), "n") == (2, 3)
    assert Size()([4], "n") == 4
    with pytest.raises(errors.WrongShape):
        Size()((), "n")


@pytest.mark.parametrize("kind", [*tw.sets.every(), *tw.functions.every()])
def test_every_set_and_function_declares_all_its_settings(kind):
    undeclared = [s.name for s in settings.settings_of(kind).values() if not s.declared and s.check]
    assert not undeclared or kind.__name__ in ("Custom",)
