"""Feedback that a learner must refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tidewolf.core.arrays import like, namespace
from tidewolf.core.batch import Stream
from tidewolf.core.feedback import Bandit, FirstOrder, FullInformation, first_order
from tidewolf.core.types import Array
from tidewolf.functions import Linear
from tidewolf.methods.base import Learner


def bad_feedback(learner: Learner[Any], stream: Stream, t: int, state: Any) -> dict[str, Any]:
    """Feedback on round t of the kind the learner needs, spoilt in one way each, by what is wrong
    with it.
    """
    part = stream[t : t + 1]
    left, x = learner.rounds_at_once(state), learner.act(state)
    good = first_order_at(stream, t, x)
    whole = FullInformation(part.losses, part.constraints)
    values = Bandit(part.losses.values(x), part.constraints.values(x))
    bad: dict[str, Any] = {"nothing (None)": None, "text": "up"}
    needs = learner.reads(part.losses)
    for other in (values, whole, good):
        if not isinstance(other, learner.takes):
            bad[f"{type(other).__name__} feedback"] = other
    if needs is FirstOrder:
        return bad | _bad_first_order(good, x, left)
    if needs is Bandit:
        return bad | _bad_bandit(values.constraint_values, x, left)
    return bad | _bad_full_information(stream, whole, x, left)


def _bad_first_order(feedback: FirstOrder, x: Array, left: int) -> dict[str, Any]:
    good = feedback._replace(violation=1.0, constraint_slope=1.0)
    bad: dict[str, Any] = {}
    for name in ("loss_gradient", "constraint_gradient"):
        bad[f"a NaN in the {name}"] = good._replace(**{name: x * math.nan})
        bad[f"an infinite {name}"] = good._replace(**{name: like(np.full(x.shape, math.inf), x)})
        bad[f"a {name} of another shape"] = good._replace(**{name: _wide(x)})
    for number in (-1.0, math.nan, math.inf):
        bad[f"a violation of {number}"] = good._replace(violation=number)
    for k in (0, left + 1):
        bad[_too_many(k, left)] = good._replace(rounds=k)
    return bad


def _bad_bandit(values: Array, x: Array, left: int) -> dict[str, Any]:
    two = namespace(x).stack([values, values])
    spoilt = {
        "a NaN": values * math.nan,
        "an infinite number": values + math.inf,
        "minus infinity": values - math.inf,
        "a second axis": two,
        "one value more": two[:, 0],
        "a number alone": 1.0,
    }
    bad: dict[str, Any] = {}
    for name in Bandit._fields:
        for what, wrong in spoilt.items():
            bad[f"{what} in the {name}"] = Bandit(values, values)._replace(**{name: wrong})
    for k in (0, left + 1):
        bad[_too_many(k, left)] = Bandit(like(np.zeros(k), x), like(np.zeros(k), x))
    return bad


def _bad_full_information(
    stream: Stream, whole: FullInformation, x: Array, left: int
) -> dict[str, Any]:
    other = Linear(_wide(x)[None, ...])
    bad = {
        "functions of another shape": FullInformation(other, other),
        "feedback on no round": FullInformation(whole.losses[:0], whole.constraints[:0]),
    }
    if left < len(stream):
        more = stream[: left + 1]
        bad[_too_many(left + 1, left)] = FullInformation(more.losses, more.constraints)
    return bad


def _too_many(rounds: int, left: int) -> str:
    return f"feedback on {rounds} rounds where 1 to {left} are due"


def _wide(x: Array) -> Array:
    """An array with one axis more than a point."""
    return like(np.ones((*x.shape, 2)), x)


def first_order_at(stream: Stream, t: int, x: Array) -> FirstOrder:
    """The first-order feedback on round t at x."""
    losses, constraints = stream.losses[t : t + 1], stream.constraints[t : t + 1]
    return first_order(losses, constraints, x, constraints.values(x))
