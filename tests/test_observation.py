"""What `Session.observe` refuses: the kind of error, what it names, and that nothing changes."""

from __future__ import annotations

import numpy as np
import pytest

import tidewolf as tw
from test_session import (
    BLOCKS,
    COSTS,
    LIMITS,
    RNG,
    SINGLE,
    STREAM,
    Listener,
    advanced,
    named,
    observe,
    saved,
)
from tidewolf.core.errors import InvalidInput, NotFinite, NotSupported, WrongShape, WrongType
from tidewolf.core.feedback import Bandit, FirstOrder, FullInformation
from tidewolf.functions import Capacity, Custom, Linear
from tidewolf.sets import Simplex

ONE, LIMIT = Linear.one(COSTS[0]), Capacity.one(LIMITS[0])
NAN = [0.0, np.nan, 0.0, 0.0, 0.0]
GOOD = FirstOrder(np.ones(5), 1.0, np.arange(5.0), 2.0, 4.0, 1)
NEEDS = "; LyapunovDescent needs FirstOrder"
GRADIENTS = {
    "loss_gradient": np.ones(5),
    "constraint_value": 0.5,
    "constraint_gradient": np.ones(5),
}
REFUSED = {
    "nothing": ((), {}, InvalidInput, "nothing" + NEEDS),
    "capacities": (
        (),
        {"capacities": np.ones(5)},
        InvalidInput,
        "capacities" + NEEDS,
    ),
    "costs, loss": (
        (),
        {"costs": COSTS[0], "loss": ONE},
        InvalidInput,
        "costs and loss" + NEEDS,
    ),
    "costs of another shape": (
        (),
        {"costs": np.ones(4), "capacities": np.ones(5)},
        WrongShape,
        r"costs .*\(4,\)",
    ),
    "a NaN in capacities": (
        (),
        {"costs": COSTS[0], "capacities": [np.nan, 1.0, 1.0, 1.0, 1.0]},
        NotFinite,
        "capacities",
    ),
    "text as costs": ((), {"costs": "dear"}, WrongType, "costs"),
    "constraint": ((), {"constraint": LIMIT}, InvalidInput, "constraint" + NEEDS),
    "loss, gradient": (
        (),
        {"loss": ONE, "loss_gradient": COSTS[0]},
        InvalidInput,
        "loss and loss_gradient" + NEEDS,
    ),
    "loss, value": (
        (),
        {"loss": ONE, "constraint_value": 0.1},
        InvalidInput,
        "loss and constraint_value" + NEEDS,
    ),
    "gradient": (
        (),
        {"loss_gradient": COSTS[0]},
        InvalidInput,
        "loss_gradient" + NEEDS,
    ),
    "values, gradient": (
        (),
        {**GRADIENTS, "loss_value": 1.0},
        InvalidInput,
        "loss_gradient and constraint_value and constraint_gradient and loss_value" + NEEDS,
    ),
    "feedback, loss": (
        (GOOD,),
        {"loss": ONE},
        InvalidInput,
        "a FirstOrder and loss" + NEEDS,
    ),
    "array": ((COSTS[0],), {}, InvalidInput, "a ndarray" + NEEDS),
    "stream": ((STREAM,), {}, InvalidInput, "a Stream" + NEEDS),
    "bandit values": (
        (),
        {"loss_value": 1.0, "constraint_value": 0.1},
        NotSupported,
        "Bandit feedback .*" + NEEDS,
    ),
    "bandit": (
        (Bandit(np.ones(1), np.ones(1)),),
        {},
        NotSupported,
        "Bandit feedback .*" + NEEDS,
    ),
    "array as loss": ((), {"loss": COSTS[0], "constraint": LIMIT}, WrongType, "loss"),
    "number as constraint": ((), {"loss": ONE, "constraint": 0.5}, WrongType, "constraint"),
    "text in feedback": ((FullInformation(ONE, "up"),), {}, WrongType, "constraint"),
    "unequal rounds": (
        (),
        {"loss": STREAM.losses[:2], "constraint": LIMIT},
        WrongShape,
        "must be 2 .* not 1 ",
    ),
    "unequal shapes": (
        (),
        {"loss": ONE, "constraint": Capacity.one(np.ones(3))},
        WrongShape,
        r"\(3,\)",
    ),
    "other shape": (
        (),
        {"loss": Linear.one(np.ones(3)), "constraint": Capacity.one(np.ones(3))},
        WrongShape,
        r"\(3,\)",
    ),
    "no rounds": (
        (),
        {"loss": STREAM.losses[:0], "constraint": STREAM.constraints[:0]},
        InvalidInput,
        "rounds",
    ),
    "many rounds": (
        (),
        {"loss": STREAM.losses[:4], "constraint": STREAM.constraints[:4]},
        InvalidInput,
        "4",
    ),
    "violation alone": (
        (),
        {"loss_gradient": COSTS[0], "constraint_value": 0.5},
        InvalidInput,
        "constraint_gradient",
    ),
    **{
        f"{name} = {value!r}": ((), {**GRADIENTS, name: value}, error, name)
        for name, value, error in (
            ("constraint_value", np.nan, NotFinite),
            ("constraint_value", -np.inf, NotFinite),
            ("constraint_value", "much", WrongType),
            ("loss_gradient", NAN, NotFinite),
            ("constraint_gradient", NAN, NotFinite),
            ("loss_gradient", np.ones(4), WrongShape),
            ("constraint_gradient", 1.0, WrongShape),
            ("loss_gradient", ["a"] * 5, WrongType),
            ("loss_gradient", [[1.0], 2.0], WrongType),
        )
    },
    "unused nan": (
        (),
        {**GRADIENTS, "constraint_value": -1.0, "constraint_gradient": NAN},
        NotFinite,
        "constraint_gradient",
    ),
    **{
        f"feedback's {name} = {value!r}": ((GOOD._replace(**{name: value}),), {}, error, said)
        for name, value, error, said in (
            ("loss_gradient", NAN, NotFinite, "loss gradient"),
            ("constraint_gradient", [1.0], WrongShape, "constraint gradient"),
            ("violation", -1.0, InvalidInput, "violation"),
            ("violation", np.nan, NotFinite, "violation"),
            ("violation", "a", WrongType, "violation"),
            ("rounds", 4, InvalidInput, "rounds"),
            ("rounds", "a", WrongType, "rounds"),
            ("rounds", 0, InvalidInput, "rounds"),
        )
    },
}


@pytest.mark.parametrize("learner", [SINGLE[0], BLOCKS[0]], ids=named)
@pytest.mark.parametrize(
    ("args", "kwargs", "error", "sentence"), REFUSED.values(), ids=REFUSED.keys()
)
def test_what_cannot_be_observed_gets_a_sentence_and_changes_nothing(
    learner, args, kwargs, error, sentence
):
    for rounds in (0, 7):
        session = advanced(learner, rounds)
        before, x = saved(session), session.play().copy()
        with pytest.raises(error, match=sentence):
            session.observe(*args, **kwargs)
        assert saved(session) == before
        assert session.play().tobytes() == x.tobytes()
        observe(session, rounds)
        assert saved(session) == saved(advanced(learner, rounds + 1))


def test_an_error_of_ones_own_function_changes_nothing():
    def broken(x):
        raise ZeroDivisionError("a user's own")

    session = advanced(SINGLE[1], 4)
    with pytest.raises(ZeroDivisionError, match="a user's own"):
        session.observe(loss=Custom.one(lambda x: 0.0, broken, 5), constraint=LIMIT)
    assert saved(session) == saved(advanced(SINGLE[1], 4))


def test_a_gradient_too_large_to_square_changes_nothing():
    session = advanced(SINGLE[1], 4)
    overflows = (
        r"A loss of slope 2.24e\+200 was given, whose square would overflow; slopes from 1e-140 to "
        r"1e\+140 are accepted"
    )
    with pytest.raises(NotFinite, match=overflows):
        session.observe(loss_gradient=np.full(5, 1e200), constraint_value=0.0)
    assert saved(session) == saved(advanced(SINGLE[1], 4))


def test_a_learner_that_needs_functions_says_so():
    session = tw.Session(Listener(Simplex(5)))
    for how in ({"feedback": GOOD}, GRADIENTS):
        with pytest.raises(NotSupported, match="needs FullInformation"):
            session.observe(**how)
    assert Listener.heard == []


def test_a_learner_that_needs_values_gets_them_and_says_so(monkeypatch):
    monkeypatch.setattr(Listener, "needs", Bandit)
    session = tw.Session(Listener(Simplex(5)))
    with pytest.raises(NotSupported, match="needs Bandit"):
        session.observe(GOOD)
    with pytest.raises(NotFinite, match=r"loss_value holds nan at 0"):
        session.observe(loss_value=np.nan, constraint_value=0.0)
    session.observe(loss_value=2, constraint_value=-0.5)
    (seen,) = Listener.heard
    assert (seen.loss_values.tolist(), seen.constraint_values.tolist(), seen.rounds) == (
        [2.0],
        [-0.5],
        1,
    )
    points = RNG.dirichlet(np.ones(5), 3)
    monkeypatch.setattr(Listener, "acts", lambda self, state, k: points[:k])
    session.observe(loss=STREAM.losses[:2], constraint=STREAM.constraints[:2])
    seen = Listener.heard[-1]
    assert seen.loss_values.tolist() == pytest.approx([COSTS[t] @ points[t] for t in range(2)])
    assert seen.constraint_values.tolist() == pytest.approx(
        [(points[t] - LIMITS[t]).max() for t in range(2)]
    )
