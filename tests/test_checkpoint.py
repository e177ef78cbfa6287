"""Saved states: the same bits back, no pickle, and a sentence for every file that is not what it
should be.
"""

import os
import pickle
from typing import Any, NamedTuple

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from test_archive import forged, sealed
from tidewolf.core import checkpoint, errors, types
from tidewolf.core.conforming import conforming
from tidewolf.core.randomness import generator


class Box(NamedTuple):
    content: Any


def there_and_back(content, reference=None):
    data = checkpoint.dump(Box(content), settings="s", learner="Test")
    reference = np.zeros(1) if reference is None else reference
    return checkpoint.load(data, settings="s", reference=reference).fields["content"]


# --- the codec ------------------------------------------------------------------------------------

numbers = st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats() | st.text()


@given(st.recursive(numbers, lambda inside: st.lists(inside, max_size=3).map(tuple), max_leaves=12))
def test_numbers_text_and_tuples_come_back_as_they_were(content):
    def same(a, b):
        if isinstance(a, tuple):
            return type(b) is tuple and len(a) == len(b) and all(map(same, a, b))
        if isinstance(a, float) and isinstance(b, float):
            return a.hex() == b.hex()
        return type(a) is type(b) and a == b

    assert same(content, there_and_back(content))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.bool_])
def test_arrays_and_numbers_come_back_bit_for_bit_and_read_only(dtype):
    strange = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, np.nextafter(1, 2)])
    shapes, rng = ((), (0,), (3,), (2, 3, 4)), np.random.default_rng(0)
    arrays = [100 * rng.standard_normal(shape) for shape in shapes]
    with np.errstate(invalid="ignore", over="ignore"):
        made = [np.asarray(each).astype(dtype) for each in (*arrays, strange)]
    for array in (*made, made[-1][::-1], np.asfortranarray(made[3])):
        back = there_and_back(array)
        assert (back.dtype, back.shape) == (array.dtype, array.shape)
        assert back.tobytes() == array.tobytes()
        assert not back.flags.writeable
    assert type(there_and_back(made[0][()])) is type(made[0].item())


def test_arrays_of_another_library_return_to_it():
    back = there_and_back(strict.asarray([1.0, 2.0]), strict.zeros(1))
    assert type(back) is type(strict.zeros(1))
    assert [float(x) for x in back] == [1.0, 2.0]


def test_what_cannot_be_saved_is_named():
    for content, name in (({1, 2}, "A set"), ((1, lambda: 0), "A function")):
        with pytest.raises(errors.NotSupported, match=f"{name} cannot be saved"):
            there_and_back(content)


def test_a_file_says_who_wrote_it():
    data = checkpoint.dump(Box(1), settings="s", learner="Test")
    writer = checkpoint.load(data, settings="s", reference=None).writer
    assert writer["numpy"] == np.__version__
    assert set(writer) >= {"tidewolf", "numpy", "python", "machine"}


# --- files that are not what they should be -------------------------------------------------------


LEARNER = tw.LyapunovDescent(tw.sets.Simplex(3), horizon=9)
SAVED = LEARNER.save(LEARNER.start())


HEADS = (b"", b"PK\x03\x04", b"tidewolf state 3", b"tidewolf state x\n", b"\n" + SAVED)
BODIES = (b"", b"nonsense", b"PK\x05\x06" + 18 * b"\0")


@pytest.mark.parametrize("data", [*HEADS, *map(sealed, BODIES)])
def test_what_is_no_state_is_refused(data):
    with pytest.raises(errors.BrokenFile):
        LEARNER.load(data)


@given(place=st.integers(17, len(SAVED) - 1), bit=st.integers(0, 7))
def test_a_state_that_was_changed_cut_or_made_longer_is_refused(place, bit):
    changed = bytearray(SAVED)
    changed[place] ^= 1 << bit
    for data in (bytes(changed), SAVED[:place], SAVED + b"\0"):
        with pytest.raises(errors.BrokenFile):
            LEARNER.load(data)


def test_a_newer_file_is_refused():
    with pytest.raises(errors.NewerFormat, match="format 4; this tidewolf reads format 3"):
        LEARNER.load(SAVED.replace(b"state 3\n", b"state 4\n", 1))
    with pytest.raises(errors.NewerFormat, match="'hypergraph' is unknown here: install a newer"):
        LEARNER.load(forged(SAVED, lambda fields, _: fields["pool"].update(stored="hypergraph")))


def test_a_file_of_other_settings_is_refused():
    for other in (
        tw.LyapunovDescent(tw.sets.Simplex(3), horizon=10),
        tw.LyapunovDescent(tw.sets.Simplex(3), horizon=9, caution=3.0),
        tw.LyapunovDescent(tw.sets.Simplex(4), horizon=9),
        tw.LyapunovDescent(tw.sets.Simplex(3, total=1 + 2**-52), horizon=9),
        tw.LyapunovDescent(tw.sets.Translated(tw.sets.Simplex(3), np.zeros(3)), horizon=9),
        tw.baselines.SinhaVaze(tw.sets.Simplex(3), horizon=9),
    ):
        with pytest.raises(errors.OtherSettings, match="LyapunovDescent"):
            other.load(SAVED)
    assert tw.LyapunovDescent(tw.sets.Simplex(3, 1), 9.0).load(SAVED).t == 0


def test_names_of_nodes_are_no_settings():
    ends, from_edges = (("s", "t"), ("u", "v")), tw.sets.FlowPolytope.from_edges
    made = [from_edges([(a, b), (a, b)], source=a, target=b) for a, b in ends]
    first, second = (tw.LyapunovDescent(K, horizon=5) for K in made)
    assert second.load(first.save(first.start())).t == 0


def test_a_pickle_inside_is_never_opened():
    class Bomb:
        def __reduce__(self):
            return os.abort, ()

    bomb = pickle.dumps(Bomb())
    with pytest.raises(errors.BrokenFile):
        LEARNER.load(sealed(bomb))
    with pytest.raises(errors.BrokenFile, match="array of object"):
        LEARNER.load(sealed(b'[{},[["|O",[1]]]]\n' + bomb))


# --- files ----------------------------------------------------------------------------------------


# --- randomness -----------------------------------------------------------------------------------


def test_randomness_is_a_function_of_seed_purpose_and_round():
    keys = [(0, "a"), (0, "b"), (1, "a"), (0, "a", 1), (0, "a", 2), (2**53, "a"), (2**53 + 1, "a")]
    drawn = {key: generator(*key).standard_normal(4).tobytes() for key in (*keys, (0, ""))}
    assert len(set(drawn.values())) == len(drawn)
    generator(0, "a").standard_normal(100)
    np.random.default_rng(0).standard_normal(3)
    for key, numbers in drawn.items():
        assert generator(*key).standard_normal(4).tobytes() == numbers
    assert generator(0, "a", 0).standard_normal(4).tobytes() == drawn[0, "a"]


def test_randomness_is_the_same_on_every_machine():
    assert generator(7, "flows", 3).integers(0, 1000, 5).tolist() == [290, 579, 873, 989, 563]


@pytest.mark.parametrize("key", [(-1, "a"), (1, "a", 1.5)])
def test_bad_seeds_are_refused(key):
    with pytest.raises(errors.InvalidInput):
        generator(*key)


# --- types of states ---

K = tw.sets.Simplex(3)


class Clock(NamedTuple):
    t: int
    began: int = 0


class Member(NamedTuple):
    x: types.Array
    weight: float
    clock: Clock


class State(NamedTuple):
    clock: Clock
    member: Member
    more: tuple[Member, ...]
    last: Member | None
    pair: tuple[int, str]
    limit: float | None
    flag: bool


def member(weight=0.5, t=2):
    return Member(np.full(3, 1 / 3), weight, Clock(t))


BEGUN = State(Clock(0), member(t=0), (member(t=0),), None, (0, ""), None, False)
LATER = State(Clock(7, 3), member(), (member(), member(0.1)), member(), (1, "a"), 2.0, True)


class Older(NamedTuple):
    clock: Any


def read_back(state, kind=State, begun=BEGUN):
    data = checkpoint.dump(state, settings="s", learner="Test")
    fields = checkpoint.load(data, settings="s", reference=np.zeros(1)).fields
    return conforming(fields, kind, begun, K)


def types_of(value):
    return type(value), tuple(map(types_of, value)) if isinstance(value, tuple) else ()


@pytest.mark.parametrize("state", [BEGUN, LATER])
def test_records_inside_records_come_back_as_they_were(state):
    back = read_back(state)
    assert types_of(back) == types_of(state)
    one, other = (checkpoint.dump(each, settings="s", learner="Test") for each in (back, state))
    assert one == other


OTHER = member()._replace
WRONG = {
    "clock": [(7, 3), None, Clock(True), Clock(2.0), member()],
    "member": [Older(Clock(1)), OTHER(x=np.ones(4)), member(float("nan"))],
    "more": [(member(), OTHER(x=np.array([0.0, 1.0, np.inf]))), (member(), 5), member()],
    "last": [5, OTHER(x=np.full(3, np.nan))],
    "pair": [(1,), ("a", "a"), (1, 1)],
    "limit": ["a", Clock(1)],
    "flag": [1],
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused(name):
    for wrong in WRONG[name]:
        with pytest.raises(ValueError, match=r"\w"):
            read_back(LATER._replace(**{name: wrong}))


def test_a_field_with_a_default_may_be_missing():
    """As in a file of a tidewolf whose states did not have it yet."""

    class Saved(NamedTuple):
        t: int

    assert read_back(Saved(4), Clock, Clock(0)) == Clock(4, 0)


class Holder(NamedTuple):
    parts: tuple[Any, ...]


def test_a_part_that_says_itself_what_it_remembers_is_read_as_it_began():
    begun, later = Holder((Clock(0), member(t=0))), Holder((Clock(7, 3), member()))
    assert types_of(read_back(later, Holder, begun)) == types_of(later)
    with pytest.raises(ValueError, match="parts"):
        read_back(later, Holder, Holder((None, None)))
    with pytest.raises(ValueError, match="unknown"):
        read_back(later, Holder, Holder((member(), Clock(0))))


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    learner, pipe = tw.LyapunovDescent(tw.sets.Simplex(2)), tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, "/dev/zero"):
        with pytest.raises(errors.CheckpointError, match="regular file"):
            tw.Session.load(path, learner)
