"""What `Session.observe` refuses: the kind of error, what it names, and that nothing changes."""

import numpy as np
import pytest

import tidewolf as tw
from test_session import BLOCKS, COSTS, LIMITS, SINGLE, STREAM, advanced, named, observe, saved
from tidewolf.core.errors import InvalidInput, NotFinite, NotSupported, WrongShape, WrongType
from tidewolf.core.feedback import Bandit, FirstOrder, FullInformation
from tidewolf.functions import Capacity, Custom, Linear


def broken(x):
    raise ZeroDivisionError("a user's own")


ONE, LIMIT = Linear.one(COSTS[0]), Capacity.one(LIMITS[0])
OWN = Custom.one(lambda x: 0.0, broken, 5)
SMALL = {"loss": Linear.one(np.ones(3)), "constraint": Capacity.one(np.ones(3))}
NAN = [0.0, np.nan, 0.0, 0.0, 0.0]
GOOD = FirstOrder(np.ones(5), 1.0, np.arange(5.0), 2.0, 4.0, 1)
GRADIENTS = {"loss_gradient": np.ones(5), "constraint_gradient": np.ones(5)}
GRADIENTS["constraint_value"] = 0.5
ROUNDS = {n: {"loss": STREAM.losses[:n], "constraint": STREAM.constraints[:n]} for n in (0, 4)}
REFUSED = [
    ({}, InvalidInput, "nothing; LyapunovDescent needs FirstOrder"),
    ({"capacities": np.ones(5)}, InvalidInput, "capacities"),
    ({"costs": COSTS[0], "loss": ONE}, InvalidInput, "costs and loss"),
    ({"costs": np.ones(4), "capacities": np.ones(5)}, WrongShape, r"costs .*\(4,\)"),
    ({"costs": COSTS[0], "capacities": NAN}, NotFinite, "capacities"),
    ({"constraint": LIMIT}, InvalidInput, "constraint"),
    ({"loss": ONE, "loss_gradient": COSTS[0]}, InvalidInput, "loss and loss_gradient"),
    ({"loss_gradient": COSTS[0]}, InvalidInput, "loss_gradient"),
    ({**GRADIENTS, "loss_value": 1.0}, InvalidInput, "loss_value"),
    ({"feedback": GOOD, "loss": ONE}, InvalidInput, "a FirstOrder and loss"),
    ({"feedback": STREAM}, InvalidInput, "a Stream"),
    ({"loss_value": 1.0, "constraint_value": 0.1}, NotSupported, "Bandit"),
    ({"feedback": Bandit(np.ones(1), np.ones(1))}, NotSupported, "Bandit"),
    ({"loss": COSTS[0], "constraint": LIMIT}, WrongType, "loss"),
    ({"feedback": FullInformation(ONE, "up")}, WrongType, "constraint"),
    ({"loss": STREAM.losses[:2], "constraint": LIMIT}, WrongShape, "must be 2 .* not 1 "),
    ({"loss": ONE, "constraint": SMALL["constraint"]}, WrongShape, r"\(3,\)"),
    (SMALL, WrongShape, r"\(3,\)"),
    (ROUNDS[0], InvalidInput, "rounds"),
    (ROUNDS[4], InvalidInput, "4"),
    ({"loss_gradient": COSTS[0], "constraint_value": 0.5}, InvalidInput, "constraint_gradient"),
    ({"loss_gradient": np.full(5, 1e200), "constraint_value": 0.0}, NotFinite, "loss"),
    ({"loss": OWN, "constraint": LIMIT}, ZeroDivisionError, "a user's own"),
    ({**GRADIENTS, "constraint_value": -1.0, "constraint_gradient": NAN}, NotFinite, "constraint_"),
    *(
        ({**GRADIENTS, name: value}, error, name)
        for name, value, error in (
            ("constraint_value", np.nan, NotFinite),
            ("constraint_value", "much", WrongType),
            ("loss_gradient", NAN, NotFinite),
            ("constraint_gradient", NAN, NotFinite),
            ("loss_gradient", np.ones(4), WrongShape),
            ("constraint_gradient", 1.0, WrongShape),
            ("loss_gradient", ["a"] * 5, WrongType),
        )
    ),
    *(
        ({"feedback": GOOD._replace(**{name: value})}, error, name.replace("_", " "))
        for name, value, error in (
            ("loss_gradient", NAN, NotFinite),
            ("constraint_gradient", [1.0], WrongShape),
            ("violation", -1.0, InvalidInput),
            ("violation", np.nan, NotFinite),
            ("rounds", 4, InvalidInput),
            ("rounds", 0, InvalidInput),
        )
    ),
]


@pytest.mark.parametrize("rounds", [0, 7])
@pytest.mark.parametrize("learner", [SINGLE[0], BLOCKS[0]], ids=named)
def test_what_cannot_be_observed_is_refused_and_changes_nothing(learner, rounds):
    session = advanced(learner, rounds)
    before, x = saved(session), session.play().copy()
    for given, error, names in REFUSED:
        with pytest.raises(error, match=names):
            session.observe(**given)
        assert saved(session) == before
        assert session.play().tobytes() == x.tobytes()
    observe(session, rounds)
    assert saved(session) == saved(advanced(learner, rounds + 1))


def test_learners_that_need_functions_or_values_say_so():
    session = tw.Session(tw.DriftPlusPenalty(tw.sets.Simplex(5), horizon=20))
    for given in ({"feedback": GOOD}, GRADIENTS):
        with pytest.raises(NotSupported, match="needs FullInformation"):
            session.observe(**given)
    learner = tw.BanditPrimalDual(tw.sets.Simplex(5), horizon=20)
    by_values, by_functions = tw.Session(learner), tw.Session(learner)
    with pytest.raises(NotSupported, match="needs Bandit"):
        by_values.observe(GOOD)
    with pytest.raises(NotFinite, match="loss_value"):
        by_values.observe(loss_value=np.nan, constraint_value=0.0)
    for t in range(5):
        x = by_values.play()
        value, violation = float(COSTS[t] @ x), float((x - LIMITS[t]).max())
        by_values.observe(loss_value=value, constraint_value=violation)
        observe(by_functions, t)
        np.testing.assert_allclose(by_values.play(), by_functions.play(), atol=1e-12)


def test_what_was_played_last_is_known_however_the_round_was_observed():
    session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(5)))
    assert session.last_played is None
    for costs, played in ((COSTS[0], None), (COSTS[1], np.eye(5)[0]), (COSTS[2], None)):
        x = session.play()
        session.observe(costs=costs, capacities=LIMITS[0], played=played)
        assert np.array_equal(session.last_played, x if played is None else played)
        for _ in range(20):  # what is refused changes nothing
            with pytest.raises(InvalidInput):
                session.observe(round=99, costs=costs)
        assert session.explain().moved is not None
